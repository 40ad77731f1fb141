// What the kernels of gemm share: single values by their type, and which tile a group makes.
#pragma once
#include "kernels/abi/gemm.h"
#include "kernels/cpu/half.h"

namespace {

inline float load_value(uint64_t from, uint32_t type, uint64_t at) {
  if (type == kGemmF32) return float_of(load_u32((const uint8_t*)from + at * 4));
  return type == kGemmF16 ? load_f16((const uint8_t*)from + at * 2)
                          : load_bf16((const uint8_t*)from + at * 2);
}

// Rounded to nearest, halves to even; a NaN stays one.
inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  if (magnitude_bits(value) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40u);
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

inline void store_value(uint64_t to, uint32_t type, uint64_t at, float value) {
  if (type == kGemmF32)
    __builtin_memcpy((uint8_t*)to + at * 4, &value, 4);
  else
    store_u16((uint8_t*)to + at * 2, type == kGemmF16 ? f32_to_f16(value) : f32_to_bf16(value));
}

// Stores alpha * sum + beta * y.
inline void store_result(const GemmBlock& p, uint32_t matrix, uint32_t m, uint32_t n, float sum) {
  const uint64_t at = uint64_t(matrix) * p.y_batch + uint64_t(m) * p.y_stride + n;
  sum *= p.alpha;
  if (p.beta != 0) sum = __builtin_fmaf(p.beta, load_value(p.y, p.y_type, at), sum);
  store_value(p.y, p.y_type, at, sum);
}

struct Tile {
  uint32_t matrix, row, column, rows, columns;
};

inline uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

inline Tile tile_of(const GemmBlock& p, uint32_t group) {
  const uint32_t across = (p.n + p.tile_tokens - 1) / p.tile_tokens, down = (p.m + p.tile - 1) / p.tile;
  const uint32_t row = group / across % down * p.tile, column = group % across * p.tile_tokens;
  return {group / across / down, row, column, least(p.tile, p.m - row), least(p.tile_tokens, p.n - column)};
}

}  // namespace
