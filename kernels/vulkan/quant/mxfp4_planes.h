// MXFP4 in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/mxfp4.h"
