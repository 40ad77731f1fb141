// A type of quants/<type>.h for the AVX-512 kernels: 64 weights at a time from 32 and 32, unsigned.
#pragma once
#include "kernels/cpu/simd/avx512vnni/block.h"

namespace {

template <class Narrow>
struct Wide {
  static constexpr uint32_t kBlockBytes = Narrow::kBlockBytes;
  static constexpr uint32_t kGroup = Narrow::kGroup;
  static constexpr bool kHasMin = Narrow::kHasMin;
  static constexpr bool kSigned = Narrow::kMost == 0;
  static constexpr int32_t kZero = kSigned ? 128 : Narrow::kZero;

  // Of groups of 16 or 32, eight to a vector, to sixteens.
  static inline __m512 sixteens(const __m256 (&eight)[2]) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(eight[0]), eight[1], 1);
  }
  static inline __m512 sixteens(const __m256 (&eight)[1]) {
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(eight[0]));
  }

  static inline SixteenScales scales(const uint8_t* block) {
    const Scales<kGroup> of_groups = Narrow::scales(block);
    const __m512 scale = sixteens(of_groups.scale);
    return {scale, kHasMin ? sixteens(of_groups.min) : scale};
  }

  template <int C>
  static inline __m512i quants(const uint8_t* block) {
    const __m512i low = _mm512_castsi256_si512(Narrow::template quants<2 * C>(block));
    const __m512i both = _mm512_inserti64x4(low, Narrow::template quants<2 * C + 1>(block), 1);
    return kSigned ? _mm512_xor_si512(both, _mm512_set1_epi8(char(0x80))) : both;
  }
};

}  // namespace
