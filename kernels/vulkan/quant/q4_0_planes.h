// Q4_0 in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/q4_0.h"
