// Blocks of 256 weights to a panel: 8 rows are unpacked 32 columns at a time and transposed.
#pragma once
#include "kernels/cpu/simd/avx2.h"
#include "kernels/cpu/simd/avx2/block.h"
#include "kernels/cpu/simd/avx2/panel.h"

namespace {

template <class Quants>
struct BlockTiles {
  static constexpr uint32_t kUnit = 256;
  static constexpr uint32_t kPanelDepth = 1024;
  static constexpr uint32_t kBlockTokens = 192;
  static constexpr bool kTransposesPlanes = requires { Quants::kPlanes; };
  using Form = Panel<Quants::kGroup, Quants::kHasMin, Quants::kZero, Quants::kMost, kPanelDepth>;

  static uint64_t x_bytes(uint64_t depth) { return q8_row_bytes(depth); }
  static uint64_t panel_bytes(uint32_t columns) {
    return uint64_t(Form::kEights) * Form::eight_bytes(columns);
  }

  // Words of 8 rows lie in the places of the columns of one, so that quants(image[i]) gives 4 columns of each
  // row.
  using Image = uint8_t[8][Quants::kBlockBytes];

  // The chunks from C on that plane P completes.
  template <int P, int C>
  static inline void chunks_of_plane(const Image& image, uint8_t* quants) {
    if constexpr (Quants::last_plane(C) == P)
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i)
        _mm256_storeu_si256((__m256i*)(quants + (C * 8 + i) * 32), Quants::template quants<C>(image[i]));
    if constexpr (C < 7) chunks_of_plane<P, C + 1>(image, quants);
  }

  // The planes from P on are transposed, each with its chunks behind, which read it from registers.
  template <int P>
  static inline void planes(const uint8_t* const (&block)[8], Image& image, uint8_t* quants) {
    constexpr uint32_t at = Quants::kPlanes[P];
    __m256i v[8];
    transpose_four(block, at, v);
    transpose_four(block, at + 16, v + 4);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) _mm256_storeu_si256((__m256i*)(image[i] + at), v[i]);
    chunks_of_plane<P, 0>(image, quants);
    if constexpr (P < Quants::last_plane(7)) planes<P + 1>(block, image, quants);
  }

  template <int C>
  static inline void chunk(const uint8_t* const (&block)[8], uint8_t* quants) {
    __m256i v[8];
    for (int r = 0; r < 8; ++r) v[r] = Quants::template quants<C>(block[r]);
    transpose(v);
    for (int i = 0; i < 8; ++i) _mm256_storeu_si256((__m256i*)(quants + (C * 8 + i) * 32), v[i]);
  }

  // Vectors of a row's groups to vectors of 8 rows for each group.
  static inline void groups(__m256i (&v)[8], uint8_t* to) {
    transpose(v);
    for (int i = 0; i < 8; ++i) _mm256_storeu_si256((__m256i*)(to + i * 32), v[i]);
  }

  static inline void unpack_scales(const uint8_t* const (&block)[8], uint8_t* scale, uint8_t* min) {
    constexpr int kVectors = Scales<Quants::kGroup>::kVectors;
    __m256i scales[kVectors][8], minima[kVectors][8];
    for (int r = 0; r < 8; ++r) {
      const Scales<Quants::kGroup> s = Quants::scales(block[r]);
      for (int v = 0; v < kVectors; ++v) {
        scales[v][r] = _mm256_castps_si256(s.scale[v]);
        minima[v][r] = _mm256_castps_si256(s.min[v]);
      }
    }
    for (int v = 0; v < kVectors; ++v) {
      groups(scales[v], scale + v * 256);
      if constexpr (Quants::kHasMin) groups(minima[v], min + v * 256);
    }
  }

  __attribute__((noinline)) static void unpack_block(const uint8_t* const (&block)[8], uint8_t* quants,
                                                     uint8_t* scale, uint8_t* min) {
    if constexpr (requires { Quants::unpack_scales; })
      Quants::unpack_scales(block, (float*)scale, (float*)min);
    else
      unpack_scales(block, scale, min);
    if constexpr (kTransposesPlanes) {
      Image image;
      planes<0>(block, image, quants);
    } else {
      chunk<0>(block, quants);
      chunk<1>(block, quants);
      chunk<2>(block, quants);
      chunk<3>(block, quants);
      chunk<4>(block, quants);
      chunk<5>(block, quants);
      chunk<6>(block, quants);
      chunk<7>(block, quants);
    }
  }

  static void unpack(const MatmulBlock& b, const Part& part, uint8_t* panel) {
    const uint64_t row_bytes = uint64_t(b.depth / 256) * Quants::kBlockBytes;
    for (uint32_t first = 0; first < part.rows; first += 8) {
      uint8_t* eight = panel + first / 8 * Form::eight_bytes(part.columns);
      for (uint32_t k = 0; k < part.columns; k += 256) {
        const uint8_t* block[8];
        for (uint32_t r = 0; r < 8; ++r) {  // rows past the end repeat the last
          const uint32_t row = part.first + (first + r < part.rows ? first + r : part.rows - 1);
          block[r] = (const uint8_t*)b.weight + row * row_bytes + (part.k + k) / 256 * Quants::kBlockBytes;
        }
        unpack_block(block, eight + k * 8, eight + Form::scale_at(part.columns) + k / Quants::kGroup * 32,
                     eight + Form::min_at(part.columns) + k / Quants::kGroup * 32);
      }
    }
  }

  static void multiply(const MatmulBlock& b, const Part& part, const uint8_t* panel, const TokenTile& tile) {
    Form::multiply(b, part, panel, tile);
  }
};

}  // namespace
