// IQ3_S in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/iq3_s.h"
