// Q3_K in AVX2: quants and scales of a block of 256 (quant/q3_k.h).
#pragma once
#include "kernels/cpu/simd/avx2/block_rows.h"
#include "kernels/cpu/simd/avx2/block_tiles.h"

namespace {

struct Quants {
  static constexpr uint32_t kBlockBytes = q3_k::kBlockBytes;
  static constexpr uint32_t kGroup = 16;
  static constexpr bool kHasMin = false;
  static constexpr int32_t kZero = 4, kMost = 7;

  static constexpr uint32_t kPlanes[] = {0, 32, 64};
  static constexpr int last_plane(int chunk) { return 1 + chunk / 4; }

  // 8 bytes of low halves for the first and the second 8, 4 bytes of two bits for each four.
  static inline Scales<16> scales(const uint8_t* block) {
    const __m128i raw =
        _mm_loadu_si128((const __m128i*)(block + 94));  // ends with the block; scales from byte 2
    const __m128i lows = _mm_shuffle_epi8(raw, _mm_setr_epi8(2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9));
    const __m128i tops =
        _mm_shuffle_epi8(raw, _mm_setr_epi8(10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13));
    const __m128i low = _mm_and_si128(_mm_srlv_epi64(lows, _mm_set_epi64x(4, 0)), _mm_set1_epi8(15));
    const __m128i top = _mm_and_si128(_mm_srlv_epi32(tops, _mm_setr_epi32(0, 2, 4, 6)), _mm_set1_epi8(3));
    const __m128i scale = _mm_sub_epi8(_mm_or_si128(low, _mm_slli_epi16(top, 4)), _mm_set1_epi8(32));
    const __m256 d = _mm256_set1_ps(_cvtsh_ss(load_u16(block + 108)));
    Scales<16> out;
    out.scale[0] = out.min[0] = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(scale)), d);
    out.scale[1] = out.min[1] =
        _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_bsrli_si128(scale, 8))), d);
    return out;
  }

  // Two bits of 32 bytes, and bit C of another 32.
  template <int C>
  static inline __m256i quants(const uint8_t* block) {
    const __m256i bytes = _mm256_loadu_si256((const __m256i*)(block + 32 + C / 4 * 32));
    const __m256i high = _mm256_loadu_si256((const __m256i*)block);
    const __m256i low = _mm256_and_si256(_mm256_srli_epi16(bytes, C % 4 * 2), _mm256_set1_epi8(3));
    const __m256i bit = C < 2 ? _mm256_slli_epi16(high, (2 - C) % 8) : _mm256_srli_epi16(high, (C - 2) % 8);
    return _mm256_or_si256(low, _mm256_and_si256(bit, _mm256_set1_epi8(4)));
  }
};

using Rows = BlockRows<Quants>;
using Tiles = BlockTiles<Quants>;

}  // namespace
