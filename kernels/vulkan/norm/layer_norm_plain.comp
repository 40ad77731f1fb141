// layer_norm_plain: y[i][h] = (x[i][h] - mean) / sqrt(variance + epsilon) * gain[h] + bias[h]     float32
//   grid    (rows)
//   group   GROUP threads, which together normalise one head of the row after the other
//   shared  GROUP * 2 bytes for sums
//   moves   x three times, y once
// The argument block is LayerNormBlock in kernels/abi/layer_norm.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"
#include "kernels/abi/layer_norm.h"
#include "kernels/vulkan/reduce.h"

layout(push_constant, scalar) uniform Push { LayerNormBlock p; CHAIN_BEHIND; };

// Normalises the head at `from`; its gain and bias begin at `gains`.
void normalise(uint from, uint gains, uint to) {
  const uint first = gl_LocalInvocationIndex;
  float sum = 0, squares = 0;
  for (uint i = first; i < p.width; i += GROUP) sum += p.x.at[from + i];
  const float mean = group_sum(sum) / float(p.width);
  for (uint i = first; i < p.width; i += GROUP) {
    const float apart = p.x.at[from + i] - mean;
    squares += apart * apart;
  }
  const float factor = 1 / sqrt(group_sum(squares) / float(p.width) + p.epsilon);
  for (uint i = first; i < p.width; i += GROUP) {
    float y = (p.x.at[from + i] - mean) * factor;
    if (uint64_t(p.gain) != 0) y *= p.gain.at[gains + i];
    if (uint64_t(p.bias) != 0) y += p.bias.at[gains + i];
    p.y.at[to + i] = y;
  }
}

void normalise_row() {
  StepState_address step = step_of(p.step);
  const uint row = gl_WorkGroupID.x, values = p.heads * p.width;
  if (row >= live_rows(step, p.rows_of)) return;
  const uint from = source_row(step, p.rows_of, row) * values;
  for (uint gains = 0; gains < values; gains += p.width) normalise(from + gains, gains, row * values + gains);
}

void main() {
  chain_wait(chain);
  normalise_row();
  chain_end(chain);
}
