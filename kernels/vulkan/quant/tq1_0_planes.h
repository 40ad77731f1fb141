#define PLANES
#include "kernels/vulkan/quant/tq1_0.h"
