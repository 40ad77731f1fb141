// Q2_K in AVX2: quants, scales and minima of a block of 256 (quant/q2_k.h).
#pragma once
#include "kernels/cpu/simd/avx2/block_rows.h"
#include "kernels/cpu/simd/avx2/block_tiles.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q2_k::kBlockBytes;
  static constexpr uint32_t kGroup = 16;
  static constexpr bool kHasMin = true;
  static constexpr int32_t kZero = 0, kMost = 3;

  static constexpr uint32_t kPlanes[] = {16, 48};
  static constexpr int last_plane(int chunk) { return chunk / 4; }

  static inline Scales<16> scales(const uint8_t* block) {
    const __m128 both = _mm_cvtph_ps(_mm_loadu_si32(block + 80));
    const __m256 d = _mm256_broadcastss_ps(both), dmin = _mm256_broadcastss_ps(_mm_movehdup_ps(both));
    Scales<16> out;
    for (int i = 0; i < 2; ++i) {
      const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(block + i * 8)));
      out.scale[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(15))), d);
      out.min[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(bytes, 4)), dmin);
    }
    return out;
  }

  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i*)(block + 16 + C / 4 * 32));
    return _mm256_and_si256(_mm256_srli_epi16(bytes, C % 4 * 2), _mm256_set1_epi8(3));
  }
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
