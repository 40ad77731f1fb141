// How a type with blocks of 256 weights shows itself to the AVX-512 kernels: struct Quants with
//   kBlockBytes, kGroup (weights that share a scale, 16 or 32)
//   quants<C>(block)   weights 64 C .. 64 C + 63 as unsigned bytes, in order
//   scales(block)      w = scale * q - min; with no minima of its own (kHasMin false) a type has
//                      w = scale * (q - kZero)
#pragma once
#include "kernels/cpu/half.h"
#include "kernels/cpu/simd/intrinsics.h"

namespace {

struct Scales {
  __m512 scale, min;  // of the block's 16 sixteens
};

}  // namespace
