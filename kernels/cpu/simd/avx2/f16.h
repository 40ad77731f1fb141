// F16 in AVX2: weights become float32, products and sums are float32 FMAs.
#pragma once
#include "kernels/cpu/simd/avx2/float_rows.h"
#include "kernels/cpu/simd/avx2/float_tiles.h"

namespace {

struct Floats {
  static constexpr uint32_t kBytes = 2;
  static inline __m256 load(const uint8_t* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)from));
  }
};

using Rows = FloatRows<Floats>;
using Tiles = FloatTiles<Floats>;

}  // namespace
