// The activation format q8, which CPU kernels read: int8 with one scale for 32 values. A row has three
// planes, one after the other, each padded to a multiple of 16 bytes. depth is a multiple of 32 (of 256 for K
// types).
//   int8  q[depth]            round(x / d), d = max |x| / 127 over 32 values
//   float d[depth / 32]
//   int16 sum[depth / 16]     sum of q over 16 values: by which a type with minima multiplies them
// Row stride: q8_row_bytes(depth).
#ifndef GRETA_ABI_Q8_H
#define GRETA_ABI_Q8_H
#include "kernels/abi/abi.h"

#define q8_scales_at(depth) (depth)
#define q8_sums_at(depth) ((depth) + ((depth) / 32 * 4 + 15) / 16 * 16)
#define q8_row_bytes(depth) ((q8_sums_at(depth) + ((depth) / 16 * 2 + 15) / 16 * 16 + 63) / 64 * 64)

// The activation format q8x16, which the matvec kernels of GPUs read: int8 with one scale for 16 values, so
// that a group can round the 16 rows of y that it makes. Where a norm follows, its gain is in the values
// already. Its factor depends on all values, so the reader computes it: 1 / sqrt(sum of squares / depth +
// epsilon).
//   int8  q[depth]                 round(x gain / d), d = max |x gain| / 127 over 16 values
//   float scales[depth / 16][2]    d, and d times the sum of q
//   float squares[depth / 16]      sum of x^2 over 16 values, without the gain
// Row stride: q8x16_row_bytes(depth).
#define q8x16_scales_at(depth) (depth)
#define q8x16_squares_at(depth) ((depth) + (depth) / 16 * 8)
#define q8x16_row_bytes(depth) (((depth) + (depth) / 16 * 12 + 63) / 64 * 64)

#endif
