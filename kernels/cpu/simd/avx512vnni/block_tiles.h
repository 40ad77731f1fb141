// Blocks of 256 weights to a panel: 16 rows are unpacked 64 columns at a time and transposed, 0.15
// instructions for a weight, shared by all tokens.
#pragma once
#include "kernels/cpu/simd/avx512vnni.h"
#include "kernels/cpu/simd/avx512vnni/block.h"
#include "kernels/cpu/simd/avx512vnni/panel.h"

namespace {

template <class Quants>
struct BlockTiles {
  static constexpr uint32_t kUnit = 256;
  static constexpr uint32_t kPanelDepth = 2048;
  static constexpr uint32_t kBlockTokens = 192;
  using Form = Panel<Quants::kGroup, Quants::kHasMin, Quants::kZero, kPanelDepth>;

  static uint64_t x_bytes(uint64_t depth) { return q8_row_bytes(depth); }
  static uint64_t panel_bytes(uint32_t columns) { return 2ull * Form::half_bytes(columns); }

  template <int C>
  static inline void chunk(const uint8_t* const (&block)[16], uint8_t* quants) {
    __m512i v[16];
    for (int r = 0; r < 16; ++r) v[r] = Quants::template quants<C>(block[r]);
    transpose(v);
    for (int i = 0; i < 16; ++i) _mm512_store_si512(quants + (C * 16 + i) * 64, v[i]);
  }

  // 16 vectors of a scale for each sixteen of a row to one vector of 16 rows for each group.
  static inline void groups(__m512i (&v)[16], uint8_t* to) {
    transpose(v);
    constexpr int step = Quants::kGroup / 16;
    for (int i = 0; i < 16; i += step) _mm512_store_si512(to + i / step * 64, v[i]);
  }

  static inline void unpack_scales(const uint8_t* const (&block)[16], uint8_t* scale, uint8_t* min) {
    __m512i scales[16], minima[16];
    for (int r = 0; r < 16; ++r) {
      const SixteenScales s = Quants::scales(block[r]);
      scales[r] = _mm512_castps_si512(s.scale);
      minima[r] = _mm512_castps_si512(s.min);
    }
    groups(scales, scale);
    if constexpr (Quants::kHasMin) groups(minima, min);
  }

  // `next_bytes` on lies the block of the next panel; it comes while this panel is multiplied.
  __attribute__((noinline)) static void unpack_block(const uint8_t* const (&block)[16], uint64_t next_bytes,
                                                     uint8_t* quants, uint8_t* scale, uint8_t* min) {
    for (int r = 0; r < 16; ++r)
      for (uint32_t line = 0; line < Quants::kBlockBytes; line += 64)
        prefetch_weights(block[r] + next_bytes + line);
    if constexpr (requires { Quants::unpack_scales; })
      Quants::unpack_scales(block, (float*)scale, (float*)min);
    else
      unpack_scales(block, scale, min);
    if constexpr (requires { Quants::unpack_quants; }) {
      Quants::unpack_quants(block, quants);
    } else {
      chunk<0>(block, quants);
      chunk<1>(block, quants);
      chunk<2>(block, quants);
      chunk<3>(block, quants);
    }
  }

  static void unpack(const MatmulBlock& b, const Part& part, uint8_t* panel) {
    const uint64_t row_bytes = uint64_t(b.depth / 256) * Quants::kBlockBytes;
    for (uint32_t first = 0; first < part.rows; first += 16) {
      uint8_t* half = panel + first / 16 * Form::half_bytes(part.columns);
      for (uint32_t k = 0; k < part.columns; k += 256) {
        const uint8_t* block[16];
        for (uint32_t r = 0; r < 16; ++r) {  // rows past the end repeat the last
          const uint32_t row = part.first + (first + r < part.rows ? first + r : part.rows - 1);
          block[r] = (const uint8_t*)b.weight + row * row_bytes + (part.k + k) / 256 * Quants::kBlockBytes;
        }
        unpack_block(block, kPanelRows * row_bytes, half + k * 16,
                     half + Form::scale_at(part.columns) + k / Quants::kGroup * 64,
                     half + Form::min_at(part.columns) + k / Quants::kGroup * 64);
      }
    }
  }

  static void multiply(const MatmulBlock& b, const Part& part, const uint8_t* panel, const TokenTile& tile) {
    Form::multiply(b, part, panel, tile);
  }
};

}  // namespace
