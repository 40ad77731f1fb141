// gate_plain: y[t][i] = activation(gate[t][i]) * up[t][i]     [tokens][width] float32
//   grid    (tokens, width / (4 * GROUP))
//   group   GROUP threads with four neighbouring values each
//   shared  none
//   moves   gate, up and y once, and y as float16 where it is wanted
// The argument block is GateBlock in kernels/abi/ops.h.
#include "kernels/hip/elementwise/activation.h"
#include "kernels/hip/halves.h"
#include "kernels/hip/step.h"

DEVICE void gate_four(const GateBlock& p, uint at) {
  const vec4 gate = load<vec4>(p.gate + at), up = load<vec4>(p.up + at);
  vec4 y;
  for (uint j = 0; j < 4; ++j) y[j] = gated(p.activation, gate[j], up[j]);
  ((GLOBAL vec4*)p.y)[at / 4] = y;
  store_halves(p.halves, at, y);
}

DEVICE void gate_one(const GateBlock& p, uint at) {
  const float y = gated(p.activation, p.gate[at], p.up[at]);
  p.y[at] = y;
  store_half(p.halves, at, y);
}

KERNEL(GROUP) void KERNEL_NAME(GateBlock p) {
  const uint t = group_x(), i = (group_y() * GROUP + thread_x()) * 4;
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.width) return;
  if (p.width % 4 == 0)
    gate_four(p, t * p.width + i);
  else
    for (uint j = i; j < min(i + 4, p.width); ++j) gate_one(p, t * p.width + j);
}
