// The type WEIGHT in AVX-512, as Rows and Tiles: by a header of its own here, else by quants/<type>.h.
#pragma once
#include "kernels/cpu/simd/avx512vnni.h"
// clang-format off: the paths have no spaces
#define IN_WORDS(path) #path
#define TYPE_HEADER(type) IN_WORDS(kernels/cpu/simd/avx512vnni/type.h)
#define SHARED_HEADER(type) IN_WORDS(kernels/cpu/simd/quants/type.h)
#if __has_include(TYPE_HEADER(WEIGHT))
#include TYPE_HEADER(WEIGHT)
#else
#include SHARED_HEADER(WEIGHT)
// clang-format on
#include "kernels/cpu/simd/avx512vnni/block_rows.h"
#include "kernels/cpu/simd/avx512vnni/block_tiles.h"
#include "kernels/cpu/simd/avx512vnni/wide.h"

namespace {

using Rows = BlockRows<Wide<Quants> >;
using Tiles = BlockTiles<Wide<Quants> >;

}  // namespace
#endif
