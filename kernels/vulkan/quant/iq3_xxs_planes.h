#define PLANES
#include "kernels/vulkan/quant/iq3_xxs.h"
