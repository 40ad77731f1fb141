#define PLANES
#include "kernels/vulkan/quant/iq2_xs.h"
