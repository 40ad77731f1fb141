// How a type with blocks of 256 weights shows itself to the AVX2 kernels: struct Quants with
//   kBlockBytes, kGroup (weights that share a scale, 16 or 32), kMost (the largest q)
//   quants<C>(block)   weights 32 C .. 32 C + 31 as unsigned bytes, in order
//   scales(block)      w = scale * q - min; with no minima of its own (kHasMin false) a type has
//                      w = scale * (q - kZero)
#pragma once
#include "kernels/cpu/half.h"
#include "kernels/cpu/simd/intrinsics.h"

namespace {

// Of the block's groups, eight to a vector: one vector for groups of 32, two for groups of 16.
template <uint32_t kGroup>
struct Scales {
  static constexpr int kVectors = 32 / kGroup;
  __m256 scale[kVectors], min[kVectors];
};

}  // namespace
