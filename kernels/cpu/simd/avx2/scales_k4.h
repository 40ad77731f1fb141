// The scales and minima of Q4_K and Q5_K (kernels/cpu/quant/shared/scales_k4.h) in AVX2: 18 instructions for
// the 8 + 8 of a block.
#pragma once
#include "kernels/cpu/simd/avx2.h"
#include "kernels/cpu/simd/avx2/block.h"

namespace {

inline Scales<32> scales_k4(const uint8_t* block) {
  const __m128i raw =
      _mm_loadu_si128((const __m128i*)(block + 4));             // bytes 0-3, 4-7, 8-11; the rest is quants
  const __m128i first = _mm_and_si128(raw, _mm_set1_epi8(63));  // scales 0-3, minima 0-3
  const __m128i low = _mm_and_si128(_mm_srlv_epi32(_mm_shuffle_epi32(raw, 0xaa), _mm_setr_epi32(0, 4, 0, 0)),
                                    _mm_set1_epi8(15));
  const __m128i high = _mm_and_si128(_mm_srli_epi32(raw, 2), _mm_set1_epi8(48));
  const __m128i both = _mm_unpacklo_epi32(first, _mm_or_si128(low, high));  // scales 0-7, minima 0-7
  const __m128 d = _mm_cvtph_ps(_mm_loadu_si32(block));                     // d, dmin
  Scales<32> out;
  out.scale[0] = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(both)), _mm256_broadcastss_ps(d));
  out.min[0] = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_bsrli_si128(both, 8))),
                             _mm256_broadcastss_ps(_mm_movehdup_ps(d)));
  return out;
}

// Byte I of each word.
template <int I>
inline __m256 byte_of_words(__m256i words) {
  const __m256i order = _mm256_add_epi32(_mm256_set1_epi32(int(0x80808000u) | I),
                                         _mm256_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12));
  return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(words, order));
}

// Four of the scales or minima of 8 rows, to [4][8].
inline void scale_words(__m256i words, __m256 factor, float* to) {
  _mm256_storeu_ps(to, _mm256_mul_ps(byte_of_words<0>(words), factor));
  _mm256_storeu_ps(to + 8, _mm256_mul_ps(byte_of_words<1>(words), factor));
  _mm256_storeu_ps(to + 16, _mm256_mul_ps(byte_of_words<2>(words), factor));
  _mm256_storeu_ps(to + 24, _mm256_mul_ps(byte_of_words<3>(words), factor));
}

// Those of 8 rows, by group: 14 instructions for a row.
inline void unpack_scales_k4(const uint8_t* const (&block)[8], float* scale, float* min) {
  __m256i v[4];  // both halves; scales 0-3, minima 0-3, low halves of the rest
  transpose_four(block, 0, v);
  const __m256i six = _mm256_set1_epi8(63), low = _mm256_set1_epi8(15), high = _mm256_set1_epi8(48);
  const __m256i none = _mm256_setzero_si256();
  const auto halves = [](__m256i words) {  // of words whose upper half is zero
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0xd8);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
  };
  const __m256 d = halves(_mm256_blend_epi16(v[0], none, 0xaa)), dmin = halves(_mm256_srli_epi32(v[0], 16));
  const __m256i rest = _mm256_and_si256(v[3], low);
  const __m256i rest_min = _mm256_and_si256(_mm256_srli_epi16(v[3], 4), low);
  scale_words(_mm256_and_si256(v[1], six), d, scale);
  scale_words(_mm256_or_si256(rest, _mm256_and_si256(_mm256_srli_epi16(v[1], 2), high)), d, scale + 32);
  scale_words(_mm256_and_si256(v[2], six), dmin, min);
  scale_words(_mm256_or_si256(rest_min, _mm256_and_si256(_mm256_srli_epi16(v[2], 2), high)), dmin, min + 32);
}

}  // namespace
