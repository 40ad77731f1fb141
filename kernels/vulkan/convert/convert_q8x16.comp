// convert_q8x16: y[i] = x[i] * gain in the activation format q8x16 (kernels/abi/q8.h)
//   x [rows][depth] float32
//   grid    (rows, depth / (16 * GROUP))
//   group   GROUP threads; each takes 16 values, which share a scale
//   shared  none
//   moves   4 bytes of x and 1.75 bytes of y a value; the gain once for each row, from the caches
// The argument block is ConvertBlock in kernels/abi/ops.h.
#include "kernels/gpu/q8x16.h"
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { ConvertBlock p; CHAIN_BEHIND; };

void round_block() {
  const uint row = gl_WorkGroupID.x, block = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  StepState_address step = step_of(p.step);
  if (row >= live_rows(step, p.rows_of) || block >= p.depth / 16) return;
  float_address x =
      float_address(uint64_t(p.x) + (uint64_t(source_row(step, p.rows_of, row)) * p.depth + block * 16) * 4);
  float values[16], squares = 0;
  [[unroll]] for (uint i = 0; i < 16; ++i) {
    values[i] = x.at[i];
    squares = fma(values[i], values[i], squares);
    if (uint64_t(p.gain) != 0) values[i] *= p.gain.at[block * 16 + i];
  }
  store_q8x16(uint64_t(p.y) + uint64_t(row) * q8x16_row_bytes(p.depth), p.depth, block, values, squares);
}

void main() {
  chain_wait(chain);
  round_block();
  chain_end(chain);
}
