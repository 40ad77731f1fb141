// What the types with grids share: points gathered to 32 weights, signs, and their scales.
#pragma once
#include "kernels/cpu/quant/shared/iq_grid.h"
#include "kernels/cpu/simd/quants/block.h"

namespace {

template <uint32_t kPoints>
inline int64_t point_of(const IqGrid<kPoints, 8>& grid, uint32_t index) {
  int64_t point;
  __builtin_memcpy(&point, grid.point[index], 8);
  return point;
}

template <uint32_t kPoints>
inline int32_t point_of(const IqGrid<kPoints, 4>& grid, uint32_t index) {
  int32_t point;
  __builtin_memcpy(&point, grid.point[index], 4);
  return point;
}

// Four bytes of 7 signs with their eighth, as iq_grid.h's even_signs.
inline uint32_t four_even_signs(uint32_t sevens) {
  uint32_t parity = sevens ^ sevens >> 4;
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return sevens | (parity & 0x01010101) << 7;
}

// Four times 7 bits, the first lowest, to the low 7 bits of four bytes.
inline uint32_t four_sevens(uint32_t bits) {
  return (bits & 0x7f) | (bits & 0x3f80) << 1 | (bits & 0x1fc000) << 2 | (bits & 0xfe00000) << 3;
}

// zero + value, or zero - value where the sign is set.
inline __m256i signed_bytes(__m256i values, uint32_t signs, char zero) {
  const __m256i from = _mm256_set1_epi8(zero);
#ifdef __AVX512BW__
  return _mm256_mask_sub_epi8(_mm256_add_epi8(from, values), signs, from, values);
#else
  const __m256i negative = bytes_of_bits(signs);
  return _mm256_add_epi8(from, _mm256_sub_epi8(_mm256_xor_si256(values, negative), negative));
#endif
}

// 8 bytes to their low and high halves in order, as words: 4-bit scales of sixteens.
inline void sixteen_nibbles(const uint8_t* from, __m256i (&out)[2]) {
  const __m128i bytes = _mm_loadl_epi64((const __m128i*)from);
  const __m128i mask = _mm_set1_epi8(15);
  const __m128i all =
      _mm_unpacklo_epi8(_mm_and_si128(bytes, mask), _mm_and_si128(_mm_srli_epi16(bytes, 4), mask));
  out[0] = _mm256_cvtepu8_epi32(all);
  out[1] = _mm256_cvtepu8_epi32(_mm_bsrli_si128(all, 8));
}

// d * (0.5 + scale) * factor
inline __m256 half_steps(__m256 d, __m256i scale, float factor) {
  const __m256 steps = _mm256_add_ps(_mm256_cvtepi32_ps(scale), _mm256_set1_ps(0.5f));
  return _mm256_mul_ps(_mm256_mul_ps(d, steps), _mm256_set1_ps(factor));
}

// Scales of groups of 16 in 8 bytes: IQ2_XS and IQ2_S.
inline Scales<16> iq2_scales(const uint8_t* block, const uint8_t* scales) {
  __m256i scale[2];
  sixteen_nibbles(scales, scale);
  const __m256 d = half_of(block);
  return scales_only(half_steps(d, scale[0], 0.25f), half_steps(d, scale[1], 0.25f));
}

// IQ1's grid as 8 * (value + 1); with 2 more where its delta is positive, a weight is
// d * (2 * scale + 1) / 8 * (q - 9).
constexpr int8_t kIq1Levels[3] = {0, 8, 16};

// d / 8 * (2 * scale + 1)
inline __m256 odd_steps(__m256 d, __m256i scale) {
  const __m256i steps = _mm256_add_epi32(_mm256_add_epi32(scale, scale), _mm256_set1_epi32(1));
  return _mm256_mul_ps(_mm256_mul_ps(d, _mm256_set1_ps(0.125f)), _mm256_cvtepi32_ps(steps));
}

}  // namespace
