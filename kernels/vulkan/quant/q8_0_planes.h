// Q8_0 in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/q8_0.h"
