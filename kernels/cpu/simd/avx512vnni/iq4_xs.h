// IQ4_XS in AVX-512. For many tokens it is unpacked as quants/iq4_xs.h says.
#pragma once
#include "kernels/cpu/simd/avx512vnni/nibbles.h"
#include "kernels/cpu/simd/avx512vnni/wide.h"
#include "kernels/cpu/simd/quants/iq4_xs.h"

namespace {

struct Values : Wide<Quants> {
  static inline Scales<32> eight_scales(const uint8_t* block) { return Quants::scales(block); }
  static inline __m512i of_halves(__m512i q) { return look_up(iq4_xs::kValues, kZero, q); }
};

using Rows = ChainedRows<Nibbles<Values, 8, 16> >;
using Tiles = BlockTiles<Wide<Quants> >;

}  // namespace
