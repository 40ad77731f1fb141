// products_plain: y[i] = the sum over m, n and k of w[m][k] * x[n][k], repeated, modulo 2^32
//   w, x float32
//   grid    (groups)
//   group   one value of y. It multiplies float32 in vectors, as lanes.h makes them
//   scratch none
//   moves   next to nothing: it measures arithmetic
// The argument block is ProductsBlock in kernels/abi/ops.h.
#include "kernels/abi/ops.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/scratch.h"

namespace {

constexpr uint32_t kRows = 4, kTokens = 2;  // TILE

// Four columns of all steps.
uint32_t multiply(const float* w, const float* x, uint32_t steps) {
  Float4 sums[kRows][kTokens] = {};
  for (uint32_t step = 0; step < steps; ++step) {
    asm volatile("" : : "r"(w), "r"(x) : "memory");  // else products that stay the same would be made once
    for (uint32_t m = 0; m < kRows; ++m)
      for (uint32_t n = 0; n < kTokens; ++n)
        sums[m][n] += load4(w + m * kProductsDepth) * load4(x + n * kProductsDepth);
  }
  uint32_t total = 0;
  for (const auto& row : sums)
    for (const Float4 sum : row)
      for (uint32_t k = 0; k < 4; ++k) total += uint32_t(uint64_t(sum[k]));
  return total;
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const ProductsBlock& b = *(const ProductsBlock*)block;
  float operands[(kRows + kTokens) * kProductsDepth];
  for (uint32_t i = 0; i < (kRows + kTokens) * kProductsDepth; ++i)
    operands[i] = load_f16((const uint16_t*)b.operands + i);
  for (uint32_t group = first_group; group < first_group + group_count; ++group) {
    uint32_t total = 0;
    for (uint32_t k = 0; k < kProductsDepth; k += 4)
      total += multiply(operands + k, operands + kRows * kProductsDepth + k, b.steps);
    ((uint32_t*)b.y)[group] = total;
  }
}
