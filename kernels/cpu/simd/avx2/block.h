// How a type with blocks of 256 weights shows itself to the AVX2 kernels: as quants/block.h says. A type can
// also have what unpacks 8 rows faster (block_tiles.h):
//   kPlanes            where in a block the vectors begin that quants<C> reads, if it treats every byte
//                      alike: they are transposed before they are split, so there are fewer to transpose
//   last_plane(C)      the last of these that quants<C> reads
//   unpack_scales(block, scale, min)   scales and minima of 8 blocks to [group][8]
#pragma once
#include "kernels/cpu/simd/quants/block.h"
