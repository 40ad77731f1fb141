// Q4_K in AVX-512: quants, scales and minima of a block of 256 (quant/q4_k.h).
#pragma once
#include "kernels/cpu/simd/avx512vnni/block_rows.h"
#include "kernels/cpu/simd/avx512vnni/block_tiles.h"
#include "kernels/cpu/simd/avx512vnni/scales_k4.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q4_k::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = true;
  static constexpr int32_t kZero = 0;

  static inline SixteenScales scales(const uint8_t* block) { return scales_k4(block); }

  // Weights 64 C .. 64 C + 63: group 2 C are the low halves of 32 bytes, group 2 C + 1 the high ones.
  template <int C>
  static inline __m512i quants(const uint8_t* block) {
    const __m512i moved = _mm512_srlv_epi32(twice(block + 16 + C * 32), halves(0, 4));
    return _mm512_and_si512(moved, _mm512_set1_epi8(15));
  }
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
