// IQ4_NL in planes (kernels/abi/quant_planes.def).
#define PLANES
#include "kernels/vulkan/quant/iq4_nl.h"
