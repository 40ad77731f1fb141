// gemm_plain: y[i] = alpha * A[i] . B[i] + beta * y[i]
//   A [m][k], B [k][n], either of them turned; float32, float16 or bfloat16. y [m][n] float32 or of that type
//   grid    (n / 16, m / 16, matrices)
//   group   256 threads with a value of y each. They sum in float32, in order of k
//   shared  none
//   moves   a and b from caches, y once; twice with beta
// The argument block is GemmBlock in kernels/abi/gemm.h.
#include "kernels/abi/gemm.h"
#include "kernels/hip/math.h"

constexpr uint kTile = 16;  // TILE of the kernel's line

DEVICE float load_value(const GLOBAL byte* from, uint type, uint64_t at) {
  if (type == kGemmF32) return ((const GLOBAL float*)from)[at];
  if (type == kGemmF16) return float(((const GLOBAL float16_t*)from)[at]);
  return uintBitsToFloat(uint(((const GLOBAL uint16_t*)from)[at]) << 16);
}

// The upper half of a float32, rounded to nearest, halves to even; a NaN stays one.
DEVICE uint16_t to_bf16(float value) {
  const uint bits = floatBitsToUint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40u);
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

DEVICE void store_value(GLOBAL byte* to, uint type, uint64_t at, float value) {
  if (type == kGemmF32)
    ((GLOBAL float*)to)[at] = value;
  else if (type == kGemmF16)
    ((GLOBAL float16_t*)to)[at] = float16_t(value);
  else
    ((GLOBAL uint16_t*)to)[at] = to_bf16(value);
}

KERNEL(GROUP) void KERNEL_NAME(GemmBlock p) {
  const uint m = group_y() * kTile + thread_x() / kTile, n = group_x() * kTile + thread_x() % kTile;
  if (m >= p.m || n >= p.n) return;
  const uint64_t matrix = group_z();
  const uint64_t a_step = p.a_turned ? p.a_stride : 1, b_step = p.b_turned ? 1 : p.b_stride;
  uint64_t a = matrix * p.a_batch + uint64_t(m) * (p.a_turned ? 1 : p.a_stride);
  uint64_t b = matrix * p.b_batch + uint64_t(n) * (p.b_turned ? p.b_stride : 1);
  float sum = 0;
  for (uint k = 0; k < p.k; ++k, a += a_step, b += b_step)
    sum = __builtin_fmaf(load_value(p.a, p.type, a), load_value(p.b, p.type, b), sum);
  const uint64_t at = matrix * p.y_batch + uint64_t(m) * p.y_stride + n;
  sum *= p.alpha;
  if (p.beta != 0) sum = __builtin_fmaf(p.beta, load_value(p.y, p.y_type, at), sum);
  store_value(p.y, p.y_type, at, sum);
}
