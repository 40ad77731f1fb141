#define PLANES
#include "kernels/vulkan/quant/mxfp4.h"
