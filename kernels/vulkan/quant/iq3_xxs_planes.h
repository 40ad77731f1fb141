// IQ3_XXS in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/iq3_xxs.h"
