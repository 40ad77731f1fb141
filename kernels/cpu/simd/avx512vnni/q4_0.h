// Q4_0 in AVX-512 (quant/q4_0.h): 8 blocks of 32 are taken as one of 256.
#pragma once
#include "kernels/cpu/simd/avx512vnni/block_rows.h"
#include "kernels/cpu/simd/avx512vnni/block_tiles.h"
#include "kernels/cpu/simd/avx512vnni/nibbles.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = 8 * q4_0::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 8;

  static inline short half(const uint8_t* block, int i) {
    return short(load_u16(block + i * q4_0::kBlockBytes));
  }

  static inline SixteenScales scales(const uint8_t* block) {
    const __m128i eight = _mm_setr_epi16(half(block, 0), half(block, 1), half(block, 2), half(block, 3),
                                         half(block, 4), half(block, 5), half(block, 6), half(block, 7));
    const __m512 s =
        _mm512_cvtph_ps(_mm256_set_m128i(_mm_unpackhi_epi16(eight, eight), _mm_unpacklo_epi16(eight, eight)));
    return {s, s};
  }

  // Two blocks: the low halves of 16 bytes, then the high ones.
  template <int C>
  static inline __m512i quants(const uint8_t* block) {
    const __m128i a = _mm_loadu_si128((const __m128i*)(block + 2 * C * q4_0::kBlockBytes + 2));
    const __m128i b = _mm_loadu_si128((const __m128i*)(block + (2 * C + 1) * q4_0::kBlockBytes + 2));
    const __m512i bytes = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_broadcastsi128_si256(a)),
                                             _mm256_broadcastsi128_si256(b), 1);
    const __m512i shifts = _mm512_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 4, 4, 4, 4);
    return _mm512_and_si512(_mm512_srlv_epi32(bytes, shifts), _mm512_set1_epi8(15));
  }

  static inline Scales<32> eight_scales(const uint8_t* block) {
    return scales_only(_mm256_cvtph_ps(first_words<q4_0::kBlockBytes>(block)));
  }
  static inline __m512i of_halves(__m512i q) { return q; }
};

using Rows = ChainedRows<Nibbles<Quants, 2, q4_0::kBlockBytes> >;
using Tiles = BlockTiles<Quants>;

}  // namespace
