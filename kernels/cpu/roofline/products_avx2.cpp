// products_avx2: y[i] = the sum over m, n and k of w[m][k] * x[n][k], repeated, modulo 2^32
//   w, x int8
//   grid    (groups)
//   group   one value of y. It multiplies as tiles multiply small quants: pairs by vpmaddubsw are summed in
//           int16 over eight steps, and these sums in int32
//   scratch none
//   moves   next to nothing: it measures arithmetic
// The argument block is ProductsBlock in kernels/abi/ops.h.
#include "kernels/cpu/simd/avx2.h"
#include "kernels/cpu/simd/products.h"

namespace {

constexpr uint32_t kRows = 16, kTokens = 2;  // TILE

typedef __m256i Sums[kRows / 8][kTokens];

template <uint32_t kSteps>
inline void add_steps(__m256i (&rows)[kRows / 8], __m256i (&tokens)[kTokens], Sums& sums) {
  Sums small = {};
#pragma GCC unroll 8
  for (uint32_t step = 0; step < kSteps; ++step) {
    // Operands that may be others in each step, and sums that are taken before the next one: compilers would
    // make each product once, or all before the first sum.
    asm volatile(""
                 : "+x"(rows[0]), "+x"(rows[1]), "+x"(tokens[0]), "+x"(tokens[1]), "+x"(small[0][0]),
                   "+x"(small[0][1]), "+x"(small[1][0]), "+x"(small[1][1]));
    for (uint32_t m = 0; m < kRows / 8; ++m)
      for (uint32_t n = 0; n < kTokens; ++n)
        small[m][n] = _mm256_add_epi16(small[m][n], _mm256_maddubs_epi16(rows[m], tokens[n]));
  }
  for (uint32_t m = 0; m < kRows / 8; ++m)
    for (uint32_t n = 0; n < kTokens; ++n) sums[m][n] = _mm256_add_epi32(sums[m][n], widen(small[m][n]));
}

uint32_t multiply(const int8_t* w, const int8_t* x, uint32_t steps) {
  __m256i rows[kRows / 8], tokens[kTokens];
  Sums sums = {};
  for (uint32_t m = 0; m < kRows / 8; ++m) rows[m] = _mm256_load_si256((const __m256i*)(w + m * 32));
  for (uint32_t n = 0; n < kTokens; ++n) tokens[n] = broadcast4((const uint8_t*)x + n * 4);
  uint32_t step = 0;
  for (; step + 8 <= steps; step += 8) add_steps<8>(rows, tokens, sums);
  for (; step < steps; ++step) add_steps<1>(rows, tokens, sums);
  alignas(32) uint32_t all[8];
  uint32_t total = 0;
  for (const auto& of_rows : sums)
    for (const __m256i sum : of_rows) {
      _mm256_store_si256((__m256i*)all, sum);
      for (const uint32_t lane : all) total += lane;
    }
  return total;
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  products_groups<kRows, kTokens>(block, first_group, group_count, multiply);
}
