// Q8_0, packed: tiles of 16 rows x 32 columns, tile (n / 16) * (depth / 32) + block, 544 bytes:
//   f16 d[16], one for each row;  int8 q[8][16][4], columns in fours, then rows
// The bytes are those of GGUF order; rows past n are zero.
#pragma once
#include "kernels/cpu/half.h"

namespace {

struct q8_0_packed {
  static constexpr uint32_t kBlock = 32;
  static constexpr uint32_t kRows = 16;
  static constexpr uint32_t kTileBytes = 544;

  static inline const uint8_t* tile(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block) {
    return weight + (uint64_t(n / kRows) * (depth / kBlock) + block) * kTileBytes;
  }
  static inline uint64_t matrix_bytes(uint32_t n, uint32_t depth) {
    return uint64_t((n + kRows - 1) / kRows) * (depth / kBlock) * kTileBytes;
  }
  static inline void decode(const uint8_t* weight, uint32_t n, uint32_t depth, uint32_t block, float* out) {
    const uint8_t* from = tile(weight, n, depth, block);
    const uint32_t row = n % kRows;
    const float d = load_f16(from + row * 2);
    for (uint32_t k = 0; k < kBlock; ++k) {
      const uint8_t q = from[kRows * 2 + k / 4 * (kRows * 4) + row * 4 + k % 4];
      out[k] = float(int8_t(q)) * d;
    }
  }
  // Packs block `block` of the kRows rows from `first_row`, of which those below `rows` exist.
  static inline void pack(const uint8_t* gguf, uint32_t first_row, uint32_t rows, uint32_t depth,
                          uint32_t block, uint8_t* weight) {
    uint8_t* to = weight + (tile(weight, first_row, depth, block) - weight);
    for (uint32_t row = 0; row < kRows; ++row) {
      uint8_t from[34] = {};
      if (first_row + row < rows) {
        const uint64_t index = uint64_t(first_row + row) * (depth / kBlock) + block;
        __builtin_memcpy(from, gguf + index * sizeof from, sizeof from);
      }
      __builtin_memcpy(to + row * 2, from, 2);
      for (uint32_t k = 0; k < kBlock; k += 4)
        __builtin_memcpy(to + kRows * 2 + k / 4 * (kRows * 4) + row * 4, from + 2 + k, 4);
    }
  }
};

}  // namespace
