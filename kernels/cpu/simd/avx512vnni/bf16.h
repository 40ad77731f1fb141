// BF16 in AVX-512: weights become float32, products and sums are float32 FMAs.
#pragma once
#include "kernels/cpu/simd/avx512vnni/float_rows.h"
#include "kernels/cpu/simd/avx512vnni/float_tiles.h"

namespace {

struct Floats {
  static constexpr uint32_t kBytes = 2;
  static inline __m512 widen(__m256i v) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
  }
  static inline __m512 load(const uint8_t* from) { return widen(_mm256_loadu_si256((const __m256i*)from)); }
  static inline __m512 load(const uint8_t* from, __mmask16 live) {
    return widen(_mm256_maskz_loadu_epi16(live, from));
  }
};

using Rows = FloatRows<Floats>;
using Tiles = FloatTiles<Floats>;

}  // namespace
