// The scales and minima of Q4_K and Q5_K (kernels/cpu/quant/shared/scales_k4.h) in AVX-512: 22 instructions
// for the 8 + 8 of a block, each given to its two sixteens.
#pragma once
#include "kernels/cpu/simd/avx512vnni.h"
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

// Byte I of each word as a float.
template <int I>
inline __m512 byte_of_words(__m512i words) {
  const __m512i byte = _mm512_and_si512(_mm512_srli_epi32(words, I * 8), _mm512_set1_epi32(255));
  return _mm512_cvtepi32_ps(byte);
}

// Four of the scales or minima of 16 rows, to [4][16].
inline void scale_words(__m512i words, __m512 factor, float* to) {
  _mm512_store_ps(to, _mm512_mul_ps(byte_of_words<0>(words), factor));
  _mm512_store_ps(to + 16, _mm512_mul_ps(byte_of_words<1>(words), factor));
  _mm512_store_ps(to + 32, _mm512_mul_ps(byte_of_words<2>(words), factor));
  _mm512_store_ps(to + 48, _mm512_mul_ps(byte_of_words<3>(words), factor));
}

// Those of 16 rows, by group.
inline void unpack_scales_k4(const uint8_t* const (&block)[16], float* scale, float* min) {
  __m512i v[4];  // both halves; scales 0-3, minima 0-3, low halves of the rest
  transpose_four(block, 0, v);
  const __m512i six = _mm512_set1_epi8(63), low = _mm512_set1_epi8(15), high = _mm512_set1_epi8(48);
  const __m512 d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v[0]));
  const __m512 dmin = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(v[0], 16)));
  const __m512i rest = _mm512_and_si512(v[3], low);
  const __m512i rest_min = _mm512_and_si512(_mm512_srli_epi32(v[3], 4), low);
  const __m512i top = _mm512_and_si512(_mm512_srli_epi32(v[1], 2), high);
  const __m512i top_min = _mm512_and_si512(_mm512_srli_epi32(v[2], 2), high);
  scale_words(_mm512_and_si512(v[1], six), d, scale);
  scale_words(_mm512_or_si512(rest, top), d, scale + 64);
  scale_words(_mm512_and_si512(v[2], six), dmin, min);
  scale_words(_mm512_or_si512(rest_min, top_min), dmin, min + 64);
}

}  // namespace
