// Q4_K in AVX-512: quants, scales and minima of a block of 256 (quant/q4_k.h).
#pragma once
#include "kernels/cpu/simd/avx512vnni/block_rows.h"
#include "kernels/cpu/simd/avx512vnni/block_tiles.h"
#include "kernels/cpu/simd/avx512vnni/chained_rows.h"
#include "kernels/cpu/simd/avx512vnni/scales_k4.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q4_k::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = true;
  static constexpr int32_t kZero = 0;

  static inline SixteenScales scales(const uint8_t* block) { return scales_k4(block); }
  static inline void unpack_scales(const uint8_t* const (&block)[16], float* scale, float* min) {
    unpack_scales_k4(block, scale, min);
  }

  // Weights 64 C .. 64 C + 63: group 2 C are the low halves of 32 bytes, group 2 C + 1 the high ones.
  template <int C>
  static inline __m512i quants(const uint8_t* block) {
    const __m512i moved = _mm512_srlv_epi32(twice(block + 16 + C * 32), halves(0, 4));
    return _mm512_and_si512(moved, _mm512_set1_epi8(15));
  }

  // The same of 16 rows in the order of a panel: bytes are transposed before they are split.
  static inline void unpack_quants(const uint8_t* const (&block)[16], uint8_t* quants) {
    for (uint32_t at = 0; at < 128; at += 16) {
      __m512i words[4];
      transpose_four(block, 16 + at, words);
      uint8_t* low = quants + (at / 32 * 16 + at % 32 / 4) * 64;  // 512 bytes on lie the high halves
      for (int i = 0; i < 4; ++i) {
        _mm512_store_si512(low + i * 64, _mm512_and_si512(words[i], _mm512_set1_epi8(15)));
        const __m512i moved = _mm512_srli_epi32(words[i], 4);
        _mm512_store_si512(low + 512 + i * 64, _mm512_and_si512(moved, _mm512_set1_epi8(15)));
      }
    }
  }

  // Vectors 2 and 3 are 16 times the high halves.
  static constexpr uint32_t word(uint32_t vector, uint32_t lane) { return word_k4(vector, lane); }
  static constexpr float times(uint32_t group) { return group % 2 ? 16 : 1; }
  template <int P>
  static inline TwoVectors two(const uint8_t* block) {
    const __m512i a = _mm512_loadu_si512(block + 16), b = _mm512_loadu_si512(block + 80);
    const __m512i mask = _mm512_set1_epi8(char(P ? 0xf0 : 15));
    return {_mm512_and_si512(_mm512_unpacklo_epi64(a, b), mask),
            _mm512_and_si512(_mm512_unpackhi_epi64(a, b), mask)};
  }
  static inline Scales<32> eight_scales(const uint8_t* block) { return eight_scales_k4(block); }
  static inline void eight_scales(const uint8_t* block, uint64_t row_bytes, Scales<32> (&out)[2]) {
    eight_scales_k4(block, row_bytes, out);
  }
};

using Rows = ChainedRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
