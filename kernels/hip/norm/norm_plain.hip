// norm_plain: y[i][h] = x[i][h] / rms(x[i][h]) * gain, or residual[i] + scale * that
//   x [rows][heads][width] float32
//   grid    (rows)
//   group   GROUP threads. All of them normalise a row of one head; of several heads, each wave normalises
//           one at a time
//   shared  4 bytes a wave for sums
//   moves   x twice, y once; the residual once; 1.75 bytes a value for y in q8x16, 2 bytes for y as float16
// The argument block is NormBlock in kernels/abi/ops.h.
#include "kernels/hip/halves.h"
#include "kernels/hip/reduce.h"
#include "kernels/hip/step.h"
GLSL_BEGIN
#include "kernels/gpu/q8x16.h"
GLSL_END

using Floats = const GLOBAL float*;

// The sum of squares of every `stride`-th value of a head, from `first` on.
DEVICE float squares(Floats x, uint width, uint first, uint stride) {
  float sums[4] = {};
  for (uint i = first; i < width; i += 4 * stride)
    for (uint j = 0; j < 4; ++j) {
      const float value = i + j * stride < width ? x[i + j * stride] : 0;
      sums[j] += value * value;
    }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

DEVICE float factor_of(const NormBlock& p, float sum) {
  return 1 / __builtin_sqrtf(sum / float(p.width) + p.epsilon);
}

// Stores every `stride`-th value of the head at x, from `first` on, `to` values behind the start of y.
DEVICE void scale_by(const NormBlock& p, float factor, Floats x, uint to, uint first, uint stride) {
  for (uint i = first; i < p.width; i += stride) {
    const float y = x[i] * factor * p.gain[i];
    p.y[to + i] = p.residual ? p.residual[to + i] + p.scale * y : y;
    store_half(p.halves, to + i, y);
  }
}

DEVICE vec4 four(Floats values, uint at) { return load<vec4>(values + 4 * at); }

// The same for a row of one head, four values at a time, and y in q8x16. Four loads of 16 bytes are under way
// in each operand; four lanes together round 16 values.
DEVICE void scale_fours(const NormBlock& p, float factor, Floats x, uint row, uint to) {
  const uint count = p.width / 4;
  for (uint i = thread_x(); i < count; i += 4 * GROUP) {
    vec4 y[4];
    for (uint j = 0; j < 4; ++j) {
      const uint at = min(i + j * GROUP, count - 1);
      y[j] = four(x, at) * factor * four(p.gain, at);
      if (p.residual) y[j] = four(p.residual, to / 4 + at) + p.scale * y[j];
    }
    for (uint j = 0; j < 4; ++j) {
      const uint at = i + j * GROUP;
      if (at >= count) break;
      ((GLOBAL vec4*)p.y)[to / 4 + at] = y[j];
      store_halves(p.halves, to + at * 4, y[j]);
      if (!p.rounded) continue;
      const vec4 values = p.next_gain ? y[j] * four(p.next_gain, at) : y[j];
      store_q8x16(uint64_t(p.rounded) + uint64_t(row) * q8x16_row_bytes(p.width), p.width, at, values,
                  dot(y[j], y[j]));
    }
  }
}

KERNEL(GROUP) void KERNEL_NAME(NormBlock p) {
  const Step step = step_of(p.step);
  const uint row = group_x();
  if (row >= live_rows(step, p.rows_of)) return;
  const Floats x = p.x + source_row(step, p.rows_of, row) * p.x_stride;
  const uint to = row * p.y_stride;
  if (p.heads == 1) {
    const float factor = factor_of(p, group_sum(squares(x, p.width, thread_x(), GROUP)));
    if ((p.width | p.x_stride | p.y_stride) % 4 == 0)
      scale_fours(p, factor, x, row, to);
    else
      scale_by(p, factor, x, to, thread_x(), GROUP);
    return;
  }
  for (uint h = wave_index(); h < p.heads; h += GROUP / kWave) {
    const float sum = wave_sum(squares(x + h * p.width, p.width, lane(), kWave));
    scale_by(p, factor_of(p, sum), x + h * p.width, to + h * p.width, lane(), kWave);
  }
}
