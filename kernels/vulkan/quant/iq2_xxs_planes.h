#define PLANES
#include "kernels/vulkan/quant/iq2_xxs.h"
