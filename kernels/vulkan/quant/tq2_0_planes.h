// TQ2_0 in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/tq2_0.h"
