// products_plain: y[i] = the sum over m, n and k of w[m][k] * x[n][k], p.steps times, modulo 2^32
//   w, x float16
//   grid    (groups)
//   group   GROUP threads. They multiply in float32. A thread takes four columns, and every GROUP / 8-th
//           repetition
//   shared  8 bytes a wave for sums
//   moves   next to nothing: it measures arithmetic
// The argument block is ProductsBlock in kernels/abi/ops.h.
#include "kernels/hip/glsl.h"
#include "kernels/hip/reduce.h"

namespace {
constexpr uint kRows = 8, kTokens = 4;  // TILE of the kernel in CMakeLists.txt
constexpr uint kColumnFours = kProductsDepth / 4;
}  // namespace

KERNEL(GROUP) void KERNEL_NAME(ProductsBlock p) {
  const uint four = thread_x() % kColumnFours, first = thread_x() / kColumnFours;
  const auto operands = (const GLOBAL f16vec4*)p.operands;
  vec4 w[kRows], x[kTokens];
  float sums[kRows * kTokens] = {};
  for (uint m = 0; m < kRows; ++m) w[m] = __builtin_convertvector(operands[m * kColumnFours + four], vec4);
  for (uint n = 0; n < kTokens; ++n)
    x[n] = __builtin_convertvector(operands[(kRows + n) * kColumnFours + four], vec4);
#pragma clang loop unroll(disable)
  for (uint repetition = first; repetition < p.steps; repetition += GROUP / kColumnFours)
    for (uint k = 0; k < 4; ++k)
      for (uint i = 0; i < kRows * kTokens; ++i)
        sums[i] = __builtin_fmaf(w[i / kTokens][k], x[i % kTokens][k], sums[i]);
  uint sum = 0;
  for (uint i = 0; i < kRows * kTokens; ++i) sum += uint(sums[i]);
  const uint all = group_sum(sum);
  if (thread_x() == 0) p.y[group_x()] = all;
}
