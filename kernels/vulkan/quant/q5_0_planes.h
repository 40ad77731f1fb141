#define PLANES
#include "kernels/vulkan/quant/q5_0.h"
