// How a type with blocks shows itself to the vector kernels, 256 weights at a time (8 blocks of 32 count
// as one): struct Quants with
//   kBlockBytes, kGroup (weights that share a scale, 16 or 32)
//   quants<C>(block)   weights 32 C .. 32 C + 31 as bytes, in order
//   scales(block)      w = scale * q - min; with no minima of its own (kHasMin false) a type has
//                      w = scale * (q - kZero) and gives its scales as minima
//   kMost              the largest q; 0: the bytes are signed, and kZero is 0
// These types have one Quants for both instruction sets; a type whose unpacking gains from one of its own
// has it in avx2/<type>.h or avx512vnni/<type>.h.
#pragma once
#include <immintrin.h>

#include "kernels/cpu/half.h"

namespace {

// Of the block's groups, eight to a vector: one vector for groups of 32, two for groups of 16.
template <uint32_t kGroup>
struct Scales {
  static constexpr int kVectors = 32 / kGroup;
  __m256 scale[kVectors], min[kVectors];
};

inline Scales<32> scales_only(__m256 scale) { return {{scale}, {scale}}; }
inline Scales<16> scales_only(__m256 low, __m256 high) { return {{low, high}, {low, high}}; }

// A byte of ones for each bit that is set.
inline __m256i bytes_of_bits(uint32_t bits) {
#ifdef __AVX512BW__
  return _mm256_movm_epi8(bits);
#else
  const __m256i four =
      _mm256_shuffle_epi8(_mm256_set1_epi32(int(bits)),
                          _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
  const __m256i mask = _mm256_set1_epi64x(int64_t(0x8040201008040201));
  return _mm256_cmpeq_epi8(_mm256_and_si256(four, mask), mask);
#endif
}

// 16 bytes to their low halves, then their high ones.
inline __m256i nibbles(const uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128((const __m128i*)from);
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes), _mm256_set1_epi8(15));
}

// What each of 32 bytes below 16 stands for.
inline __m256i look_up(const int8_t* values, __m256i q) {
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i*)values)), q);
}

// The halves at the start of 8 blocks, or `at` bytes into them.
template <uint32_t kStride>
inline __m256 eight_halves(const uint8_t* at) {
  return _mm256_cvtph_ps(_mm_setr_epi16(
      short(load_u16(at)), short(load_u16(at + kStride)), short(load_u16(at + 2 * kStride)),
      short(load_u16(at + 3 * kStride)), short(load_u16(at + 4 * kStride)), short(load_u16(at + 5 * kStride)),
      short(load_u16(at + 6 * kStride)), short(load_u16(at + 7 * kStride))));
}

inline __m256 half_of(const uint8_t* at) { return _mm256_set1_ps(_cvtsh_ss(load_u16(at))); }

inline __m256 negative(__m256 x) { return _mm256_xor_ps(x, _mm256_set1_ps(-0.f)); }

}  // namespace
