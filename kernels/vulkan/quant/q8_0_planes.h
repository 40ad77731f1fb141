#define PLANES
#include "kernels/vulkan/quant/q8_0.h"
