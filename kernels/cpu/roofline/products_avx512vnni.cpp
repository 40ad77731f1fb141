// products_avx512vnni: y[i] = the sum over m, n and k of w[m][k] * x[n][k], repeated, modulo 2^32
//   w, x int8
//   grid    (groups)
//   group   one value of y. It multiplies as tiles do, by vpdpbusd with sums in int32: 16 sums, none of which
//           waits for another
//   scratch none
//   moves   next to nothing: it measures arithmetic
// The argument block is ProductsBlock in kernels/abi/ops.h.
#include <immintrin.h>

#include "kernels/cpu/simd/products.h"

namespace {

constexpr uint32_t kRows = 64, kTokens = 4;  // TILE

uint32_t multiply(const int8_t* w, const int8_t* x, uint32_t steps) {
  __m512i rows[kRows / 16], tokens[kTokens], sums[kRows / 16][kTokens];
  for (uint32_t m = 0; m < kRows / 16; ++m) rows[m] = _mm512_load_si512(w + m * 64);
  for (uint32_t n = 0; n < kTokens; ++n) {
    int32_t four;
    __builtin_memcpy(&four, x + n * 4, 4);
    tokens[n] = _mm512_set1_epi32(four);
    for (uint32_t m = 0; m < kRows / 16; ++m) sums[m][n] = _mm512_setzero_si512();
  }
  for (uint32_t step = 0; step < steps; ++step) {
    asm volatile("");  // a step of work, not a formula in their number
    for (uint32_t m = 0; m < kRows / 16; ++m)
      for (uint32_t n = 0; n < kTokens; ++n) sums[m][n] = _mm512_dpbusd_epi32(sums[m][n], rows[m], tokens[n]);
  }
  __m512i total = _mm512_setzero_si512();
#pragma GCC unroll 16  // as a loop it would keep the sums in memory, in the steps too
  for (uint32_t i = 0; i < kRows / 16 * kTokens; ++i)
    total = _mm512_add_epi32(total, sums[i / kTokens][i % kTokens]);
  return uint32_t(_mm512_reduce_add_epi32(total));
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  products_groups<kRows, kTokens>(block, first_group, group_count, multiply);
}
