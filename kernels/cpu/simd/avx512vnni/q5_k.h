// Q5_K in AVX-512: quants, scales and minima of a block of 256 (quant/q5_k.h).
#pragma once
#include "kernels/cpu/simd/avx512vnni/block_rows.h"
#include "kernels/cpu/simd/avx512vnni/block_tiles.h"
#include "kernels/cpu/simd/avx512vnni/chained_rows.h"
#include "kernels/cpu/simd/avx512vnni/scales_k4.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q5_k::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = true;
  static constexpr int32_t kZero = 0;

  static inline SixteenScales scales(const uint8_t* block) { return scales_k4(block); }
  static inline void unpack_scales(const uint8_t* const (&block)[16], float* scale, float* min) {
    unpack_scales_k4(block, scale, min);
  }

  // Groups 2 C and 2 C + 1: low and high halves of 32 bytes, and bits 2 C and 2 C + 1 of another 32.
  template <int C>
  static inline __m512i quants(const uint8_t* block) {
    const __m512i low = twice(block + 48 + C * 32), high = twice(block + 16);
    const __m512i nibbles = _mm512_srlv_epi32(low, halves(0, 4));
    const __m512i bits = _mm512_rolv_epi32(high, halves((36 - 2 * C) % 32, (35 - 2 * C) % 32));  // to bit 4
    return _mm512_and_si512(choose(15, nibbles, bits), _mm512_set1_epi8(31));
  }

  static constexpr uint32_t word(uint32_t vector, uint32_t lane) { return word_k4(vector, lane); }
  static constexpr float times(uint32_t) { return 1; }
  template <int P>
  static inline TwoVectors two(const uint8_t* block) {
    const __m512i a = _mm512_loadu_si512(block + 48), b = _mm512_loadu_si512(block + 112);
    const __m512i high = twice(block + 16);
    return {with_bit<P>(_mm512_unpacklo_epi64(a, b), _mm512_unpacklo_epi64(high, high)),
            with_bit<P>(_mm512_unpackhi_epi64(a, b), _mm512_unpackhi_epi64(high, high))};
  }
  // Low (P = 0) or high halves, and of each eight of `high` the bit of its group (word_k4).
  template <int P>
  static inline __m512i with_bit(__m512i halves, __m512i high) {
    const __m512i nibbles = P ? _mm512_srli_epi32(halves, 4) : halves;
    const __m512i to_bit_4 =
        _mm512_sub_epi64(_mm512_setr_epi64(4, 0, 4, 0, 2, 62, 2, 62), _mm512_set1_epi64(P));
    return _mm512_and_si512(choose(15, nibbles, _mm512_rolv_epi64(high, to_bit_4)), _mm512_set1_epi8(31));
  }
  static inline Scales<32> eight_scales(const uint8_t* block) { return eight_scales_k4(block); }
  static inline void eight_scales(const uint8_t* block, uint64_t row_bytes, Scales<32> (&out)[2]) {
    eight_scales_k4(block, row_bytes, out);
  }
};

using Rows = ChainedRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
