// Q3_K in AVX-512: quants and scales of a block of 256 (quant/q3_k.h).
#pragma once
#include "kernels/cpu/simd/avx512vnni/block_rows.h"
#include "kernels/cpu/simd/avx512vnni/block_tiles.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q3_k::kBlockBytes;
  static constexpr uint32_t kGroup = 16;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 4;

  // 8 bytes of low halves for the first and the second 8, 4 bytes of two bits for each four.
  static inline SixteenScales scales(const uint8_t* block) {
    const __m128i raw =
        _mm_loadu_si128((const __m128i*)(block + 94));  // ends with the block; scales from byte 2
    const __m128i lows = _mm_shuffle_epi8(raw, _mm_setr_epi8(2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9));
    const __m128i tops =
        _mm_shuffle_epi8(raw, _mm_setr_epi8(10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13));
    const __m128i low = _mm_and_si128(_mm_srlv_epi64(lows, _mm_set_epi64x(4, 0)), _mm_set1_epi8(15));
    const __m128i top = _mm_and_si128(_mm_srlv_epi32(tops, _mm_setr_epi32(0, 2, 4, 6)), _mm_set1_epi8(3));
    const __m128i scale = _mm_sub_epi8(_mm_or_si128(low, _mm_slli_epi16(top, 4)), _mm_set1_epi8(32));
    const __m512 d = _mm512_set1_ps(_cvtsh_ss(load_u16(block + 108)));
    const __m512 s = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(scale)), d);
    return {s, s};
  }

  // Two pairs of sixteens: two bits of the same 32 bytes, bits 2 C and 2 C + 1 of another 32.
  template <int C>
  static inline __m512i quants(const uint8_t* block) {
    const __m512i low = twice(block + 32 + C / 2 * 32), high = twice(block);
    const __m512i two = _mm512_srlv_epi32(low, halves(C % 2 * 4, C % 2 * 4 + 2));
    const __m512i bit = _mm512_rolv_epi32(high, halves((34 - 2 * C) % 32, (33 - 2 * C) % 32));  // to bit 2
    return _mm512_and_si512(choose(3, two, bit), _mm512_set1_epi8(7));
  }
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
