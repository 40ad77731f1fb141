// What the AVX2 kernels share: the format q8, sums over lanes, a transpose.
#pragma once
#include <immintrin.h>

#include "kernels/abi/q8.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/simd/prefetch.h"

namespace {

inline float lane_sum(__m256 v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline float lane_max(__m256 v) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline uint32_t lane_max(__m256i v) {  // of unsigned integers
  const __m128i four = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  const __m128i two = _mm_max_epu32(four, _mm_unpackhi_epi64(four, four));
  return uint32_t(_mm_cvtsi128_si32(_mm_max_epu32(two, _mm_srli_epi64(two, 32))));
}

// The low byte of 8 int32 that hold q8_form.h's round_even.
inline __m256i q8_round(__m256 x, __m256 inverse) {
  const __m256 shift = _mm256_set1_ps(12582912.f);
  const __m256i rounded = _mm256_sub_epi32(
      _mm256_castps_si256(_mm256_add_ps(_mm256_mul_ps(x, inverse), shift)), _mm256_castps_si256(shift));
  return _mm256_and_si256(rounded, _mm256_set1_epi32(255));
}

// 32 values to q8, the bytes of q8_form.h.
inline void q8_block(const float* x, int8_t* q, float* scale, int16_t* sums) {
  __m256 v[4];
  __m256i max = _mm256_setzero_si256();  // as integers, since a maximum of floats may drop a NaN
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_loadu_ps(x + i * 8);
    max = _mm256_max_epu32(_mm256_castps_si256(_mm256_andnot_ps(_mm256_set1_ps(-0.f), v[i])), max);
  }
  const float d = float_of(lane_max(max)) / 127.f;
  const __m256 inverse = _mm256_set1_ps(d > 0 ? 1.f / d : 0.f);
  *scale = d;
  const __m256i low = _mm256_packus_epi32(q8_round(v[0], inverse), q8_round(v[1], inverse));
  const __m256i high = _mm256_packus_epi32(q8_round(v[2], inverse), q8_round(v[3], inverse));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
  _mm256_storeu_si256((__m256i*)q, bytes);
  // Bytes to 0..255, summed in eights against zero, brought back.
  const __m256i eights =
      _mm256_sad_epu8(_mm256_xor_si256(bytes, _mm256_set1_epi8(char(0x80))), _mm256_setzero_si256());
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

// Transposes 8 vectors of 8 words: 24 shuffles.
inline void transpose(__m256i (&v)[8]) {
  __m256i t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    v[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x20);
    t[i + 4] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x31);
  }
  for (int i = 0; i < 8; ++i) v[i] = t[i];
}

// 16 bytes of two rows in a vector's halves.
inline __m256i halves_of(const uint8_t* low, const uint8_t* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)low)),
                                 _mm_loadu_si128((const __m128i*)high), 1);
}

// Transposes 4 words of 8 rows, from `at` bytes into each: 8 shuffles.
inline void transpose_four(const uint8_t* const (&row)[8], uint32_t at, __m256i* to) {
  const __m256i a = halves_of(row[0] + at, row[4] + at), b = halves_of(row[1] + at, row[5] + at),
                c = halves_of(row[2] + at, row[6] + at), d = halves_of(row[3] + at, row[7] + at);
  const __m256i low_ab = _mm256_unpacklo_epi32(a, b), high_ab = _mm256_unpackhi_epi32(a, b),
                low_cd = _mm256_unpacklo_epi32(c, d), high_cd = _mm256_unpackhi_epi32(c, d);
  to[0] = _mm256_unpacklo_epi64(low_ab, low_cd);
  to[1] = _mm256_unpackhi_epi64(low_ab, low_cd);
  to[2] = _mm256_unpacklo_epi64(high_ab, high_cd);
  to[3] = _mm256_unpackhi_epi64(high_ab, high_cd);
}

// Products of 4 columns: 8 int32 += u8 q times s8 x.
inline __m256i pairs(__m256i q, __m256i x) { return _mm256_maddubs_epi16(q, x); }
inline __m256i widen(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }

// The same with a type's largest q; 0: q is signed, and its absolute value meets x with its sign.
template <int32_t kMost>
inline __m256i products(__m256i q, __m256i x) {
  if constexpr (kMost == 0) return pairs(_mm256_abs_epi8(q), _mm256_sign_epi8(x, q));
  return pairs(q, x);
}

inline __m256i broadcast4(const uint8_t* from) {
  int32_t four;
  __builtin_memcpy(&four, from, 4);
  return _mm256_set1_epi32(four);
}

}  // namespace
