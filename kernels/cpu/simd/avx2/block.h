// How a type with blocks of 256 weights shows itself to the AVX2 kernels: as quants/block.h says.
#pragma once
#include "kernels/cpu/simd/quants/block.h"
