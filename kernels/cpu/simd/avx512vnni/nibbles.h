// Types whose groups of 32 weights are 16 bytes, byte i with weight i low and i + 16 high, for
// chained_rows.h: the low halves of four groups are one vector and the high ones the next, with the same
// scale in each word.
//
// Group g lies at kFirst + g * kStride. `Base` is the type's Quants (block.h), and besides
//   eight_scales(block)   (chained_rows.h)
//   of_halves(q)          what the halves of bytes stand for, as unsigned bytes
#pragma once
#include "kernels/cpu/simd/avx512vnni/chained_rows.h"

namespace {

template <class Base, uint32_t kFirst, uint32_t kStride>
struct Nibbles : Base {
  static constexpr uint32_t word(uint32_t vector, uint32_t lane) {
    return (vector / 2 * 4 + lane / 4) * 8 + vector % 2 * 4 + lane % 4;
  }
  static constexpr float times(uint32_t) { return 1; }

  template <int P>
  static inline __m512i bytes(const uint8_t* block) {
    const uint8_t* from = block + kFirst + P * 4 * kStride;
    if constexpr (kStride == 16) return _mm512_loadu_si512(from);
    const auto group = [&](uint32_t g) { return _mm_loadu_si128((const __m128i*)(from + g * kStride)); };
    const __m256i low = _mm256_set_m128i(group(1), group(0)), high = _mm256_set_m128i(group(3), group(2));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }

  template <int P>
  static inline TwoVectors two(const uint8_t* block) {
    const __m512i halves = bytes<P>(block), mask = _mm512_set1_epi8(15);
    return {Base::of_halves(_mm512_and_si512(halves, mask)),
            Base::of_halves(_mm512_and_si512(_mm512_srli_epi32(halves, 4), mask))};
  }
};

// The first two bytes of 8 groups, which lie within 128 bytes.
template <uint32_t kStride>
inline __m128i first_words(const uint8_t* block) {
  static_assert(kStride % 2 == 0 && 7 * kStride < 128);
  constexpr short words = kStride / 2;
  const __m512i index =
      _mm512_castsi128_si512(_mm_mullo_epi16(_mm_set1_epi16(words), _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7)));
  return _mm512_castsi512_si128(
      _mm512_permutex2var_epi16(_mm512_loadu_si512(block), index, _mm512_loadu_si512(block + 64)));
}

// The values of a table of 16, made unsigned by `zero`.
inline __m512i look_up(const int8_t* values, int32_t zero, __m512i q) {
  const __m128i table = _mm_add_epi8(_mm_loadu_si128((const __m128i*)values), _mm_set1_epi8(char(zero)));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), q);
}

}  // namespace
