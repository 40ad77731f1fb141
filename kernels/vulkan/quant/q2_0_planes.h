#define PLANES
#include "kernels/vulkan/quant/q2_0.h"
