// y[i] = the sum over m, n and k of w[m][k] * x[n][k], p.steps times, modulo 2^32, with matrix instructions
// (matrix.h).
//   w, x float16
//   grid    (groups)
//   group   GROUP threads. Operands and sums stay in registers, and the waves share the repetitions
//   shared  8 bytes a wave for sums
//   moves   next to nothing: it measures arithmetic
// The argument block is ProductsBlock in kernels/abi/ops.h.
#pragma once
#include "kernels/hip/matrix.h"
#include "kernels/hip/reduce.h"

namespace {
constexpr uint kTall = 2, kWide = 2;  // matrices; TILE of the kernel in CMakeLists.txt has 16 rows for each
constexpr uint kDeep = kProductsDepth / kFragmentColumns;

// Fragment `deep` of 16 rows of operands from `row` on.
DEVICE Fragment load_operands(const ProductsBlock& p, uint row, uint deep) {
  const auto words = (const GLOBAL uvec4*)p.operands;
  Fragment fragment;
#pragma unroll
  for (uint k = 0; k < kFragmentWords; ++k)
    fragment.words[k] =
        words[(row + lane() % 16) * (kProductsDepth / 8) + deep * (kFragmentColumns / 8) + first_word() + k];
  return fragment;
}

DEVICE void make_products(const ProductsBlock& p) {
  Fragment w[kTall][kDeep], x[kWide][kDeep];
  Sums sums[kTall][kWide] = {};
#pragma unroll
  for (uint k = 0; k < kDeep; ++k) {
#pragma unroll
    for (uint i = 0; i < kTall; ++i) w[i][k] = load_operands(p, i * 16, k);
#pragma unroll
    for (uint j = 0; j < kWide; ++j) x[j][k] = load_operands(p, (kTall + j) * 16, k);
  }
#pragma clang loop unroll(disable)
  for (uint repetition = wave_index(); repetition < p.steps; repetition += GROUP / kWave)
#pragma unroll
    for (uint k = 0; k < kDeep; ++k)
#pragma unroll
      for (uint i = 0; i < kTall; ++i)
#pragma unroll
        for (uint j = 0; j < kWide; ++j) sums[i][j] = multiply(w[i][k], x[j][k], sums[i][j]);
  uint sum = 0;
#pragma unroll
  for (uint i = 0; i < kTall * kWide; ++i)
#pragma unroll
    for (uint r = 0; r < kLayout.results; ++r) sum += uint(sums[i / kWide][i % kWide][r]);
  const uint all = group_sum(sum);
  if (thread_x() == 0) p.y[group_x()] = all;
}
}  // namespace
