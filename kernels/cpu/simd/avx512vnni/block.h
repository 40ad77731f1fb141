// How a type with blocks of 256 weights shows itself to the AVX-512 kernels, by itself or through wide.h:
// struct Quants with
//   kBlockBytes, kGroup (weights that share a scale, 16 or 32)
//   quants<C>(block)   weights 64 C .. 64 C + 63 as unsigned bytes, in order
//   scales(block)      w = scale * q - min; with no minima of its own (kHasMin false) a type has
//                      w = scale * (q - kZero)
#pragma once
#include "kernels/cpu/simd/quants/block.h"

namespace {

struct SixteenScales {
  __m512 scale, min;  // of the block's 16 sixteens
};

// 32 bytes in both halves.
inline __m512i twice(const uint8_t* from) {
  return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i*)from));
}

// a in the words of the first half, b in those of the second.
inline __m512i halves(int a, int b) {
  return _mm512_setr_epi32(a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b);
}

// Of each byte the bits of `mask` from a, the others from b.
inline __m512i choose(char mask, __m512i a, __m512i b) {
  return _mm512_ternarylogic_epi32(_mm512_set1_epi8(mask), a, b, 0xca);
}

}  // namespace
