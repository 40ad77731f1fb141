// The scales and minima of Q4_K and Q5_K (kernels/cpu/quant/shared/scales_k4.h) in AVX-512: 22 instructions
// for the 8 + 8 of a block, each given to its two sixteens.
#pragma once
#include "kernels/cpu/simd/avx512vnni/block.h"

namespace {

inline SixteenScales scales_k4(const uint8_t* block) {
  const __m128i raw =
      _mm_loadu_si128((const __m128i*)(block + 4));             // bytes 0-3, 4-7, 8-11; the rest is quants
  const __m128i first = _mm_and_si128(raw, _mm_set1_epi8(63));  // scales 0-3, minima 0-3
  const __m128i low = _mm_and_si128(_mm_srlv_epi32(_mm_shuffle_epi32(raw, 0xaa), _mm_setr_epi32(0, 4, 0, 0)),
                                    _mm_set1_epi8(15));
  const __m128i high = _mm_and_si128(_mm_srli_epi32(raw, 2), _mm_set1_epi8(48));
  const __m128i both = _mm_unpacklo_epi32(first, _mm_or_si128(low, high));  // scales 0-7, minima 0-7
  const __m512 scale = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_unpacklo_epi8(both, both)));
  const __m512 min = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_unpackhi_epi8(both, both)));
  const __m128 d = _mm_cvtph_ps(_mm_loadu_si32(block));  // d, dmin
  return {_mm512_mul_ps(scale, _mm512_broadcastss_ps(d)),
          _mm512_mul_ps(min, _mm512_broadcastss_ps(_mm_movehdup_ps(d)))};
}

}  // namespace
