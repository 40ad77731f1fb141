// Q3_K in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/q3_k.h"
