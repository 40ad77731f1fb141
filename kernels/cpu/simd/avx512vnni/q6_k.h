// Q6_K in AVX-512: quants and scales of a block of 256 (quant/q6_k.h).
#pragma once
#include "kernels/cpu/simd/avx512vnni/block_rows.h"
#include "kernels/cpu/simd/avx512vnni/block_tiles.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q6_k::kBlockBytes;
  static constexpr uint32_t kGroup = 16;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 32;

  static inline SixteenScales scales(const uint8_t* block) {
    const __m512i scale = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)(block + 192)));
    const __m512 s =
        _mm512_mul_ps(_mm512_cvtepi32_ps(scale), _mm512_set1_ps(_cvtsh_ss(load_u16(block + 208))));
    return {s, s};
  }

  // Weights 64 C ..: both of a half's chunks take the same 64 low bytes, C even the low halves, and
  // the same 32 high bytes: bits 0-1, 2-3 for C even, 4-5, 6-7 for C odd. 7 instructions.
  template <int C>
  static inline __m512i quants(const uint8_t* block) {
    const __m512i bytes = _mm512_loadu_si512(block + C / 2 * 64);
    const __m512i low = C % 2 ? _mm512_srli_epi32(bytes, 4) : bytes;
    const __m512i more = twice(block + 128 + C / 2 * 32);
    const __m512i high = _mm512_rolv_epi32(more, C % 2 ? halves(0, 30) : halves(4, 2));  // to bits 4-5
    return _mm512_and_si512(choose(15, low, high), _mm512_set1_epi8(63));
  }
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
