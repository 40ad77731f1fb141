#define PLANES
#include "kernels/vulkan/quant/q1_0.h"
