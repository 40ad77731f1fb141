// IQ4_NL in AVX-512: 8 blocks of 32 are taken as one of 256. For many tokens it is unpacked as
// quants/iq4_nl.h says.
#pragma once
#include "kernels/cpu/simd/avx512vnni/nibbles.h"
#include "kernels/cpu/simd/avx512vnni/wide.h"
#include "kernels/cpu/simd/quants/iq4_nl.h"

namespace {

struct Values : Wide<Quants> {
  static inline Scales<32> eight_scales(const uint8_t* block) {
    return scales_only(_mm256_cvtph_ps(first_words<iq4_nl::kBlockBytes>(block)));
  }
  static inline __m512i of_halves(__m512i q) { return look_up(iq4_nl::kValues, kZero, q); }
};

using Rows = ChainedRows<Nibbles<Values, 2, iq4_nl::kBlockBytes> >;
using Tiles = BlockTiles<Wide<Quants> >;

}  // namespace
