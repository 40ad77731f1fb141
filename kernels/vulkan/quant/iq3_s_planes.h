#define PLANES
#include "kernels/vulkan/quant/iq3_s.h"
