// What the AVX-512 kernels share: the format q8, sums over lanes, a transpose.
#pragma once
#include <immintrin.h>

#include "kernels/abi/q8.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/simd/prefetch.h"

namespace {

// 16 int32 that hold int8 values, from 16 floats: q8_form.h's round_even.
inline __m512i q8_round(__m512 x, __m512 inverse) {
  const __m512 shift = _mm512_set1_ps(12582912.f);
  return _mm512_sub_epi32(_mm512_castps_si512(_mm512_add_ps(_mm512_mul_ps(x, inverse), shift)),
                          _mm512_castps_si512(shift));
}

// 32 values to q8, the bytes of q8_form.h: 30 instructions and two sums over lanes.
inline void q8_block(const float* x, int8_t* q, float* scale, int16_t* sums) {
  const __m512 a = _mm512_loadu_ps(x), b = _mm512_loadu_ps(x + 16);
  // As integers, since a maximum of floats may drop a NaN.
  const __m512i max =
      _mm512_max_epu32(_mm512_castps_si512(_mm512_abs_ps(a)), _mm512_castps_si512(_mm512_abs_ps(b)));
  const float d = float_of(_mm512_reduce_max_epu32(max)) / 127.f;
  const __m512 inverse = _mm512_set1_ps(d > 0 ? 1.f / d : 0.f);
  *scale = d;
  const __m128i qa = _mm512_cvtepi32_epi8(q8_round(a, inverse)),
                qb = _mm512_cvtepi32_epi8(q8_round(b, inverse));
  _mm_storeu_si128((__m128i*)q, qa);
  _mm_storeu_si128((__m128i*)(q + 16), qb);
  // Bytes to 0..255, summed in eights against zero, brought back.
  const __m256i both = _mm256_xor_si256(_mm256_set_m128i(qb, qa), _mm256_set1_epi8(char(0x80)));
  const __m256i eights = _mm256_sad_epu8(both, _mm256_setzero_si256());
  const __m256i sixteens = _mm256_add_epi64(eights, _mm256_bsrli_epi128(eights, 8));
  sums[0] = int16_t(_mm256_extract_epi16(sixteens, 0) - 16 * 128);
  sums[1] = int16_t(_mm256_extract_epi16(sixteens, 8) - 16 * 128);
}

inline void q8_row(const float* x, uint32_t depth, uint8_t* y) {
  int8_t* q = (int8_t*)y;
  float* scales = (float*)(y + q8_scales_at(depth));
  int16_t* sums = (int16_t*)(y + q8_sums_at(depth));
  for (uint32_t i = 0; i < depth / 32; ++i) q8_block(x + i * 32, q + i * 32, scales + i, sums + i * 2);
}

// Transposes 16 vectors of 16 words: 64 shuffles.
inline void transpose(__m512i (&v)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    v[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    v[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

// 16 bytes of four rows in a vector's quarters.
inline __m512i quarters_of(const uint8_t* const* row, uint32_t at) {
  __m512i all = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i*)(row[0] + at)));
  all = _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i*)(row[4] + at)), 1);
  all = _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i*)(row[8] + at)), 2);
  return _mm512_inserti32x4(all, _mm_loadu_si128((const __m128i*)(row[12] + at)), 3);
}

// Transposes 4 words of 16 rows, from `at` bytes into each: 8 shuffles.
inline void transpose_four(const uint8_t* const (&row)[16], uint32_t at, __m512i* to) {
  const __m512i a = quarters_of(row, at), b = quarters_of(row + 1, at), c = quarters_of(row + 2, at),
                d = quarters_of(row + 3, at);
  const __m512i low_ab = _mm512_unpacklo_epi32(a, b), high_ab = _mm512_unpackhi_epi32(a, b),
                low_cd = _mm512_unpacklo_epi32(c, d), high_cd = _mm512_unpackhi_epi32(c, d);
  to[0] = _mm512_unpacklo_epi64(low_ab, low_cd);
  to[1] = _mm512_unpackhi_epi64(low_ab, low_cd);
  to[2] = _mm512_unpacklo_epi64(high_ab, high_cd);
  to[3] = _mm512_unpackhi_epi64(high_ab, high_cd);
}

}  // namespace
