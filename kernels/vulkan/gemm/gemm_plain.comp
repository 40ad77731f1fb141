// gemm_plain: y[i] = alpha * A[i] . B[i] + beta * y[i]
//   A [m][k], B [k][n], either of them turned; float32, float16 or bfloat16. y [m][n] float32 or of that type
//   grid    (n / 16, m / 16, matrices)
//   group   256 threads with a value of y each. They sum in float32, in order of k
//   shared  none
//   moves   a and b from caches, y once; twice with beta
// The argument block is GemmBlock in kernels/abi/gemm.h.
#include "kernels/vulkan/gemm/values.h"

layout(push_constant, scalar) uniform Push { GemmBlock p; };

const uint kTile = 16;  // TILE of the kernel's line

void main() {
  const uint m = gl_WorkGroupID.y * kTile + gl_LocalInvocationIndex / kTile;
  const uint n = gl_WorkGroupID.x * kTile + gl_LocalInvocationIndex % kTile;
  if (m >= p.m || n >= p.n) return;
  const uint64_t matrix = gl_WorkGroupID.z;
  const uint64_t a_step = p.a_turned != 0 ? p.a_stride : 1, b_step = p.b_turned != 0 ? 1 : p.b_stride;
  uint64_t a = matrix * p.a_batch + uint64_t(m) * (p.a_turned != 0 ? 1 : p.a_stride);
  uint64_t b = matrix * p.b_batch + uint64_t(n) * (p.b_turned != 0 ? p.b_stride : 1);
  float sum = 0;
  for (uint k = 0; k < p.k; ++k, a += a_step, b += b_step)
    sum = fma(load_value(uint64_t(p.a), p.type, a), load_value(uint64_t(p.b), p.type, b), sum);
  const uint64_t at = matrix * p.y_batch + uint64_t(m) * p.y_stride + n;
  sum *= p.alpha;
  if (p.beta != 0) sum = fma(p.beta, load_value(uint64_t(p.y), p.y_type, at), sum);
  store_value(uint64_t(p.y), p.y_type, at, sum);
}
