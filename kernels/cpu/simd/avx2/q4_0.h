// Q4_0 in AVX2 (quant/q4_0.h): 8 blocks of 32 are taken as one of 256.
#pragma once
#include "kernels/cpu/simd/avx2/block_rows.h"
#include "kernels/cpu/simd/avx2/block_tiles.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = 8 * q4_0::kBlockBytes;
  static constexpr uint32_t kGroup = 32;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 8, kMost = 15;

  static inline short half(const uint8_t* block, int i) {
    return short(load_u16(block + i * q4_0::kBlockBytes));
  }

  static inline Scales<32> scales(const uint8_t* block) {
    const __m128i eight = _mm_setr_epi16(half(block, 0), half(block, 1), half(block, 2), half(block, 3),
                                         half(block, 4), half(block, 5), half(block, 6), half(block, 7));
    Scales<32> out;
    out.scale[0] = out.min[0] = _mm256_cvtph_ps(eight);
    return out;
  }

  // The low halves of 16 bytes, then the high ones.
  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const __m128i bytes = _mm_loadu_si128((const __m128i*)(block + C * q4_0::kBlockBytes + 2));
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes), _mm256_set1_epi8(15));
  }
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
