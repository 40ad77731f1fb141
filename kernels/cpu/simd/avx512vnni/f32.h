// F32 in AVX-512: products and sums are float32 FMAs.
#pragma once
#include "kernels/cpu/simd/avx512vnni/float_rows.h"
#include "kernels/cpu/simd/avx512vnni/float_tiles.h"

namespace {

struct Floats {
  static constexpr uint32_t kBytes = 4;
  static inline __m512 load(const uint8_t* from) { return _mm512_loadu_ps(from); }
  static inline __m512 load(const uint8_t* from, __mmask16 live) { return _mm512_maskz_loadu_ps(live, from); }
};

using Rows = FloatRows<Floats>;
using Tiles = FloatTiles<Floats>;

}  // namespace
