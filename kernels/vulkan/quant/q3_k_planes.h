#define PLANES
#include "kernels/vulkan/quant/q3_k.h"
