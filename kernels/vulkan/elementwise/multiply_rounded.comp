// multiply_rounded: multiply_plain, with the form of y that the next product reads
//   grid    (tokens, heads * width / (4 * GROUP))
//   group   GROUP threads with four neighbouring values each
//   shared  none
//   moves   x, by and y once; 1.75 bytes a value for y in q8x16, 2 bytes for y as float16
// The argument block is MultiplyRounded in kernels/abi/sequences.h.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/abi/sequences.h"
#include "kernels/gpu/multiply.h"
#include "kernels/gpu/q8x16.h"
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/halves.h"
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)
layout(push_constant, scalar) uniform Push { MultiplyRounded all; CHAIN_BEHIND; };

// Heads have multiples of 4 values, so four neighbours are of one head. Strides may be any.
void multiply() {
  MultiplyBlock p = all.block;
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;  // neighbours round together
  const uint t = gl_WorkGroupID.x, quarter = gl_WorkGroupID.y * GROUP + thread;
  const uint width = p.heads * p.width, i = quarter * 4;
  if (t >= live_rows(step_of(p.step), kRowsTokens) || i >= width) return;
  const uint head = t * p.heads + i / p.width, at = i % p.width;
  vec4 x, by, y;
  [[unroll]] for (uint j = 0; j < 4; ++j) {
    x[j] = p.x.at[head * p.x_stride + (at + j) * p.x_step];
    by[j] = p.by.at[head * p.by_stride + at + j];
  }
  for (uint j = 0; j < 4; ++j) y[j] = multiplied(p, x[j], by[j]);
  vec4_address(uint64_t(p.y)).at[(t * width + i) / 4] = y;
  store_halves(all.halves, t * width + i, y);
  if (uint64_t(all.rounded) != 0)
    store_q8x16(uint64_t(all.rounded) + uint64_t(t) * q8x16_row_bytes(width), width, quarter, y, dot(y, y));
}

void main() {
  chain_wait(chain);
  multiply();
  chain_end(chain);
}
