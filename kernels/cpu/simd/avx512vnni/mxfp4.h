// MXFP4 in AVX-512: 8 blocks of 32 are taken as one of 256. For many tokens it is unpacked as quants/mxfp4.h
// says.
#pragma once
#include "kernels/cpu/simd/avx512vnni/nibbles.h"
#include "kernels/cpu/simd/avx512vnni/wide.h"
#include "kernels/cpu/simd/quants/mxfp4.h"

namespace {

struct Values : Wide<Quants> {
  static inline Scales<32> eight_scales(const uint8_t* block) { return Quants::scales(block); }
  static inline __m512i of_halves(__m512i q) { return look_up(mxfp4::kValues, kZero, q); }
};

using Rows = ChainedRows<Nibbles<Values, 1, mxfp4::kBlockBytes> >;
using Tiles = BlockTiles<Wide<Quants> >;

}  // namespace
