// Q2_0 in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/q2_0.h"
