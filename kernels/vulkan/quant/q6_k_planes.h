#define PLANES
#include "kernels/vulkan/quant/q6_k.h"
