// gate_plain: y[t][i] = activation(gate[t][i]) * up[t][i]     [tokens][width] float32
//   grid    (tokens, width / (4 * GROUP))
//   group   GROUP threads with four neighbouring values each
//   shared  none
//   moves   gate, up and y once, and y as float16 where it is wanted
// The argument block is GateBlock in kernels/abi/ops.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"
#include "kernels/vulkan/elementwise/activation.h"
#include "kernels/vulkan/halves.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)
layout(push_constant, scalar) uniform Push { GateBlock p; CHAIN_BEHIND; };

void gate_four(uint at) {
  const vec4 gate = vec4_address(uint64_t(p.gate)).at[at / 4], up = vec4_address(uint64_t(p.up)).at[at / 4];
  vec4 y;
  for (uint j = 0; j < 4; ++j) y[j] = gated(p.activation, gate[j], up[j]);
  vec4_address(uint64_t(p.y)).at[at / 4] = y;
  store_halves(p.halves, at, y);
}

void gate_one(uint at) {
  const float y = gated(p.activation, p.gate.at[at], p.up.at[at]);
  p.y.at[at] = y;
  store_half(p.halves, at, y);
}

void gate() {
  const uint t = gl_WorkGroupID.x, i = (gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex) * 4;
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= p.width) return;
  if (p.width % 4 == 0) gate_four(t * p.width + i);
  else
    for (uint j = i; j < min(i + 4, p.width); ++j) gate_one(t * p.width + j);
}

void main() {
  chain_wait(chain);
  gate();
  chain_end(chain);
}
