// Q2_K in AVX-512: quants, scales and minima of a block of 256 (quant/q2_k.h).
#pragma once
#include "kernels/cpu/simd/avx512vnni/block_rows.h"
#include "kernels/cpu/simd/avx512vnni/block_tiles.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q2_k::kBlockBytes;
  static constexpr uint32_t kGroup = 16;
  static constexpr bool kHasMin = true;
  static constexpr int32_t kZero = 0;

  static inline SixteenScales scales(const uint8_t* block) {
    const __m512i both = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)block));
    const __m512 scale = _mm512_cvtepi32_ps(_mm512_and_si512(both, _mm512_set1_epi32(15)));
    const __m512 min = _mm512_cvtepi32_ps(_mm512_srli_epi32(both, 4));
    const __m128 d = _mm_cvtph_ps(_mm_loadu_si32(block + 80));  // d, dmin
    return {_mm512_mul_ps(scale, _mm512_broadcastss_ps(d)),
            _mm512_mul_ps(min, _mm512_broadcastss_ps(_mm_movehdup_ps(d)))};
  }

  // Two pairs of sixteens: two bits of the same 32 bytes.
  template <int C>
  static inline __m512i quants(const uint8_t* block) {
    const __m512i moved = _mm512_srlv_epi32(twice(block + 16 + C / 2 * 32), halves(C % 2 * 4, C % 2 * 4 + 2));
    return _mm512_and_si512(moved, _mm512_set1_epi8(3));
  }
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
