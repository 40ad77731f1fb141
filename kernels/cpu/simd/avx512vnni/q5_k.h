// Q5_K in AVX-512: quants, scales and minima of a block of 256 (quant/q5_k.h).
#pragma once
#include "kernels/cpu/simd/avx512vnni/block_rows.h"
#include "kernels/cpu/simd/avx512vnni/block_tiles.h"
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
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
