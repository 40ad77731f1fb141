#define PLANES
#include "kernels/vulkan/quant/q4_0.h"
