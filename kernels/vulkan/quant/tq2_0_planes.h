#define PLANES
#include "kernels/vulkan/quant/tq2_0.h"
