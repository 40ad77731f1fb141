// Q4_K in AVX2: quants, scales and minima of a block of 256 (quant/q4_k.h).
#pragma once
#include "kernels/cpu/simd/avx2/block_rows.h"
#include "kernels/cpu/simd/avx2/block_tiles.h"
#include "kernels/cpu/simd/avx2/scales_k4.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q4_k::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = true;
  static constexpr int32_t kZero = 0, kMost = 15;
  static constexpr uint32_t kPlanes[] = {16, 48, 80, 112};
  static constexpr int last_plane(int chunk) { return chunk / 2; }

  static inline Scales<32> scales(const uint8_t* block) { return scales_k4(block); }
  static inline void unpack_scales(const uint8_t* const (&block)[8], float* scale, float* min) {
    unpack_scales_k4(block, scale, min);
  }

  // 32 bytes hold one group in their low and the next in their high halves.
  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i*)(block + 16 + C / 2 * 32));
    return _mm256_and_si256(C % 2 ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
  }
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
