#define PLANES
#include "kernels/vulkan/quant/iq1_s.h"
