// Q5_0 in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/q5_0.h"
