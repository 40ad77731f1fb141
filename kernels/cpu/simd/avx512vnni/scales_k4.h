// The scales and minima of Q4_K and Q5_K (kernels/cpu/quant/shared/scales_k4.h) in AVX-512: 22 instructions
// for the 8 + 8 of a block, each given to its two sixteens.
#pragma once
#include "kernels/cpu/simd/avx512vnni.h"
#include "kernels/cpu/simd/avx512vnni/block.h"

namespace {

// Scales 0-7, minima 0-7.
inline __m128i bytes_k4(const uint8_t* block) {
  const __m128i raw =
      _mm_loadu_si128((const __m128i*)(block + 4));             // bytes 0-3, 4-7, 8-11; the rest is quants
  const __m128i first = _mm_and_si128(raw, _mm_set1_epi8(63));  // scales 0-3, minima 0-3
  const __m128i low = _mm_and_si128(_mm_srlv_epi32(_mm_shuffle_epi32(raw, 0xaa), _mm_setr_epi32(0, 4, 0, 0)),
                                    _mm_set1_epi8(15));
  const __m128i high = _mm_and_si128(_mm_srli_epi32(raw, 2), _mm_set1_epi8(48));
  return _mm_unpacklo_epi32(first, _mm_or_si128(low, high));
}

inline SixteenScales scales_k4(const uint8_t* block) {
  const __m128i both = bytes_k4(block);
  const __m512 scale = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_unpacklo_epi8(both, both)));
  const __m512 min = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_unpackhi_epi8(both, both)));
  const __m128 d = _mm_cvtph_ps(_mm_loadu_si32(block));  // d, dmin
  return {_mm512_mul_ps(scale, _mm512_broadcastss_ps(d)),
          _mm512_mul_ps(min, _mm512_broadcastss_ps(_mm_movehdup_ps(d)))};
}

// d or dmin times 8 bytes.
inline __m256 times_bytes(__m256 factor, __m128i bytes) {
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), factor);
}

inline Scales<32> scaled_k4(const uint8_t* block, __m128i both) {
  const __m256 halves = _mm256_cvtph_ps(_mm_set1_epi32(int(load_u32(block))));  // d, dmin
  Scales<32> out;
  out.scale[0] = times_bytes(_mm256_moveldup_ps(halves), both);
  out.min[0] = times_bytes(_mm256_movehdup_ps(halves), _mm_bsrli_si128(both, 8));
  return out;
}

inline Scales<32> eight_scales_k4(const uint8_t* block) { return scaled_k4(block, bytes_k4(block)); }

// Those of two rows, whose bytes are taken apart together.
inline void eight_scales_k4(const uint8_t* block, uint64_t row_bytes, Scales<32> (&out)[2]) {
  const __m256i raw =
      _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)(block + 4))),
                              _mm_loadu_si128((const __m128i*)(block + row_bytes + 4)), 1);
  const __m256i first = _mm256_and_si256(raw, _mm256_set1_epi8(63));
  const __m256i low = _mm256_and_si256(
      _mm256_srlv_epi32(_mm256_shuffle_epi32(raw, 0xaa), _mm256_setr_epi32(0, 4, 0, 0, 0, 4, 0, 0)),
      _mm256_set1_epi8(15));
  const __m256i high = _mm256_and_si256(_mm256_srli_epi32(raw, 2), _mm256_set1_epi8(48));
  const __m256i both = _mm256_unpacklo_epi32(first, _mm256_or_si256(low, high));
  out[0] = scaled_k4(block, _mm256_castsi256_si128(both));
  out[1] = scaled_k4(block + row_bytes, _mm256_extracti128_si256(both, 1));
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

// 64 bytes hold two 32s of halves. Where the eights of two such 64 are interleaved, two vectors come of it
// whose words belong to the same groups: 0, 4, 0, 4, 2, 6, 2, 6 in the low halves of each eight (vectors 0
// and 1), one more in the high ones (2 and 3). Word `lane` of a vector lies here in the block.
constexpr uint32_t word_k4(uint32_t vector, uint32_t lane) {
  const uint32_t pair = lane / 8 + lane / 2 % 2 * 2, eight = lane / 4 % 2 * 2 + vector % 2;
  return (pair * 2 + vector / 2) * 8 + eight * 2 + lane % 2;
}

}  // namespace
