// softmax_plain: y[r] = exp(z[r]) / (sum of exp(z[r]) + exp(sink)), or its logarithm, of scores z made of x
//   grid    (rows of the step, heads)
//   group   GROUP threads, which together make row i * heads + h
//   shared  8 bytes a wave for sums
//   moves   x, mask and y once; x and mask behind the first GROUP * 4 * kHeld values of a row three times
// The argument block is SoftmaxBlock in kernels/abi/softmax.h.
#include "kernels/hip/glsl.h"
#include "kernels/hip/reduce.h"
#include "kernels/hip/step.h"

GLSL_BEGIN
#include "kernels/gpu/softmax.h"
GLSL_END

KERNEL(GROUP) void KERNEL_NAME(SoftmaxBlock p) {
  const uint i = group_x(), r = i * p.heads + group_y();
  if (i >= live_rows(step_of(p.step), p.rows_of) || r >= p.rows) return;
  const SoftmaxRow row = softmax_row(p, r);
  const uint first = thread_x(), count = (p.width + 3) / 4, behind = first + kHeld * GROUP;
  vec4 held[kHeld];
  float most = row.sink;
  hold_scores(p, row, first, count, held);
#pragma unroll
  for (uint j = 0; j < kHeld; ++j) most = largest(most, held[j]);
  for (uint at = behind; at < count; at += GROUP) most = largest(most, scores(p, row, at));
  most = of_key(group_max(key_of(most)));
  const float base = most == kMinusInfinity ? 0 : most;
  const bool logarithm = p.logarithm != 0;
  vec4 sums = vec4(0.0f);
#pragma unroll
  for (uint j = 0; j < kHeld; ++j) {
    const vec4 powers = exponentials(held[j], base);
    sums += powers;
    if (!logarithm) held[j] = powers;
  }
  for (uint at = behind; at < count; at += GROUP) sums += exponentials(scores(p, row, at), base);
  const float sum = group_sum((sums.x + sums.y) + (sums.z + sums.w)) + exp_f32(row.sink - base);
#pragma unroll
  for (uint j = 0; j < kHeld; ++j)
    if (first + j * GROUP < count)
      store_four(p, row, first + j * GROUP, softmax_of(p, held[j], base, sum));
  for (uint at = behind; at < count; at += GROUP) {
    const vec4 z = scores(p, row, at);
    store_four(p, row, at, softmax_of(p, logarithm ? z : exponentials(z, base), base, sum));
  }
}
