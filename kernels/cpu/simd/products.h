// The operands of a `products` row as int8, four columns of a row side by side, as panels have them:
//   w[kProductsDepth / 4][kRows][4], x[kProductsDepth / 4][kTokens][4]
#pragma once
#include "kernels/abi/ops.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/scratch.h"

namespace {

inline void take_bytes(uint64_t halves, uint32_t rows, int8_t* out) {
  for (uint32_t m = 0; m < rows; ++m)
    for (uint32_t k = 0; k < kProductsDepth; ++k)
      out[(k / 4 * rows + m) * 4 + k % 4] =
          int8_t(load_f16((const uint16_t*)halves + m * kProductsDepth + k));
}

// multiply(w, x, steps): the sum of all products of four columns.
template <uint32_t kRows, uint32_t kTokens, class Multiply>
inline void products_groups(const void* block, uint32_t first_group, uint32_t group_count,
                            const Multiply& multiply) {
  const ProductsBlock& b = *(const ProductsBlock*)block;
  alignas(64) int8_t w[kRows * kProductsDepth], x[kTokens * kProductsDepth];
  take_bytes(b.operands, kRows, w);
  take_bytes(b.operands + kRows * kProductsDepth * 2, kTokens, x);
  for (uint32_t group = first_group; group < first_group + group_count; ++group) {
    uint32_t total = 0;
    for (uint32_t k = 0; k < kProductsDepth; k += 4)
      total += multiply(w + k * kRows, x + k * kTokens, b.steps);
    ((uint32_t*)b.y)[group] = total;
  }
}

}  // namespace
