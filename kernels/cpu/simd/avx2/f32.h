// F32 in AVX2: products and sums are float32 FMAs.
#pragma once
#include "kernels/cpu/simd/avx2/float_rows.h"
#include "kernels/cpu/simd/avx2/float_tiles.h"

namespace {

struct Floats {
  static constexpr uint32_t kBytes = 4;
  static inline __m256 load(const uint8_t* from) { return _mm256_loadu_ps((const float*)from); }
};

using Rows = FloatRows<Floats>;
using Tiles = FloatTiles<Floats>;

}  // namespace
