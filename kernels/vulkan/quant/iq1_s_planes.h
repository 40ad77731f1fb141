// IQ1_S in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/iq1_s.h"
