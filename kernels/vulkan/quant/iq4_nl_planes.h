#define PLANES
#include "kernels/vulkan/quant/iq4_nl.h"
