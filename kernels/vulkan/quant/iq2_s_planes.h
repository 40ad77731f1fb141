// IQ2_S in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/iq2_s.h"
