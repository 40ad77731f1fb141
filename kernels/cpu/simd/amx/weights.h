// Weights as tiles of A: 16 rows of 32 columns in bfloat16.
#pragma once
#include "kernels/cpu/simd/amx/tiles.h"
#include "kernels/cpu/simd/avx512vnni/type.h"

namespace {

// What GCC would else take out of a register piece by piece, by shuffles.
template <class Values>
inline void keep_in_memory(Values& values) {
  asm("" : "+m"(values));
}

// 64 weights scale * q - min of one row, four sixteens, to row `row` of two tiles.
inline void store_row(__m512i q, const float* scale, const float* min, uint32_t row, uint8_t* to) {
  alignas(64) uint8_t bytes[4][16];
  _mm512_store_si512(bytes, q);
  keep_in_memory(bytes);
  __m512 w[4];
  for (int i = 0; i < 4; ++i) {
    const __m512i wide = _mm512_cvtepu8_epi32(_mm_load_si128((const __m128i*)bytes[i]));
    w[i] = _mm512_fmsub_ps(_mm512_cvtepi32_ps(wide), _mm512_set1_ps(scale[i]), _mm512_set1_ps(min[i]));
  }
  _mm512_store_si512(to + row * 64, bf16_of(w[0], w[1]));
  _mm512_store_si512(to + kTileBytes + row * 64, bf16_of(w[2], w[3]));
}

template <class Tiles>
struct AmxWeights;

// Blocks of 256 weights.
template <class Quants>
struct AmxWeights<BlockTiles<Quants> > {
  static constexpr uint32_t kUnit = 256;

  template <int C>
  static inline void chunk(const uint8_t* block, const float* scale, const float* min, uint32_t row,
                           uint8_t* to) {
    store_row(Quants::template quants<C>(block), scale + C * 4, min + C * 4, row, to + C * 2 * kTileBytes);
  }

  __attribute__((noinline)) static void unpack(const MatmulBlock& b, uint32_t row, uint32_t rows, uint32_t k,
                                               uint8_t* to) {
    const uint64_t row_bytes = uint64_t(b.depth / 256) * Quants::kBlockBytes;
    const uint8_t* block = (const uint8_t*)b.weight + row * row_bytes + k / 256 * Quants::kBlockBytes;
    for (uint32_t r = 0; r < rows; ++r, block += row_bytes) {
      for (uint32_t line = 0; line < Quants::kBlockBytes; line += 64)
        prefetch_weights(block + kPairRows * row_bytes + line);
      const SixteenScales scales = Quants::scales(block);
      alignas(64) float scale[16], min[16];
      _mm512_store_ps(scale, scales.scale);
      _mm512_store_ps(min, Quants::kHasMin
                               ? scales.min
                               : _mm512_mul_ps(scales.scale, _mm512_set1_ps(float(Quants::kZero))));
      keep_in_memory(scale);
      keep_in_memory(min);
      chunk<0>(block, scale, min, r, to);
      chunk<1>(block, scale, min, r, to);
      chunk<2>(block, scale, min, r, to);
      chunk<3>(block, scale, min, r, to);
    }
  }
};

}  // namespace
