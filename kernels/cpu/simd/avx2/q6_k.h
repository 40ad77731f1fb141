// Q6_K in AVX2: quants and scales of a block of 256 (quant/q6_k.h).
#pragma once
#include "kernels/cpu/simd/avx2/block_rows.h"
#include "kernels/cpu/simd/avx2/block_tiles.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q6_k::kBlockBytes;
  static constexpr uint32_t kGroup = 16;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 32, kMost = 63;
  static constexpr uint32_t kPlanes[] = {0, 32, 128, 64, 96, 160};
  static constexpr int last_plane(int chunk) { return 2 + chunk / 4 * 3; }

  static inline Scales<16> scales(const uint8_t* block) {
    const __m256 d = _mm256_set1_ps(_cvtsh_ss(load_u16(block + 208)));
    Scales<16> out;
    for (int i = 0; i < 2; ++i) {
      const __m256i scale = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)(block + 192 + i * 8)));
      out.scale[i] = out.min[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(scale), d);
    }
    return out;
  }

  // Quarter j of a half: low bits from byte 32 (j % 2) + i, low half for j < 2, high bits 2 j of byte i.
  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    constexpr int half = C / 4, j = C % 4;
    const __m256i bytes = _mm256_loadu_si256((const __m256i*)(block + half * 64 + j % 2 * 32));
    const __m256i more = _mm256_loadu_si256((const __m256i*)(block + 128 + half * 32));
    const __m256i low = _mm256_and_si256(j < 2 ? bytes : _mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
    const __m256i moved = j == 0   ? _mm256_slli_epi16(more, 4)
                          : j == 1 ? _mm256_slli_epi16(more, 2)
                          : j == 2 ? more
                                   : _mm256_srli_epi16(more, 2);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(48)));
  }
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
