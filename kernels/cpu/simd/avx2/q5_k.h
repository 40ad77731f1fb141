// Q5_K in AVX2: quants, scales and minima of a block of 256 (quant/q5_k.h).
#pragma once
#include "kernels/cpu/simd/avx2/block_rows.h"
#include "kernels/cpu/simd/avx2/block_tiles.h"
#include "kernels/cpu/simd/avx2/scales_k4.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q5_k::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = true;
  static constexpr int32_t kZero = 0, kMost = 31;
  static constexpr uint32_t kPlanes[] = {16, 48, 80, 112, 144};
  static constexpr int last_plane(int chunk) { return 1 + chunk / 2; }

  static inline Scales<32> scales(const uint8_t* block) { return scales_k4(block); }
  static inline void unpack_scales(const uint8_t* const (&block)[8], float* scale, float* min) {
    unpack_scales_k4(block, scale, min);
  }

  // The low or high halves of 32 bytes, and bit C of another 32.
  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i*)(block + 48 + C / 2 * 32));
    const __m256i high = _mm256_loadu_si256((const __m256i*)(block + 16));
    const __m256i low = _mm256_and_si256(C % 2 ? _mm256_srli_epi16(bytes, 4) : bytes, _mm256_set1_epi8(15));
    const __m256i bit = C < 4 ? _mm256_slli_epi16(high, (4 - C) % 8) : _mm256_srli_epi16(high, (C - 4) % 8);
    return _mm256_or_si256(low, _mm256_and_si256(bit, _mm256_set1_epi8(16)));
  }
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
