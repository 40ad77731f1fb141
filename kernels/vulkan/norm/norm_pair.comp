// norm_pair: the norms of two blocks' results, the norm of their sum, and the residual.
//   y[t] = factor * (residual[t] + scale * norm(norm(a[t]) * a_gain + norm(b[t]) * b_gain) * gain)
//     where a, b, residual [tokens][width] float32
//   grid    (tokens)
//   group   GROUP threads, each with every GROUP-th four of values
//   shared  GROUP * 2 bytes for sums
//   moves   a and b three times, of which caches hold two; the residual and y once; 1.75 bytes a value for y
//           in q8x16
// The argument block is NormPairBlock in kernels/abi/sequences.h.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/abi/sequences.h"
#include "kernels/gpu/q8x16.h"
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/reduce.h"
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)
layout(push_constant, scalar) uniform Push { NormPairBlock p; CHAIN_BEHIND; };

vec4 four(float_address values, uint at) { return vec4_address(uint64_t(values)).at[at]; }
float factor_of(float sum) { return 1 / sqrt(sum / float(p.width) + p.epsilon); }

void normalise_row() {
  const uint t = gl_WorkGroupID.x, count = p.width / 4, from = t * count;
  if (t >= live_rows(step_of(p.step), kRowsTokens)) return;
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;  // neighbours round together
  float a_squares = 0, b_squares = 0, squares = 0;
  for (uint i = thread; i < count; i += GROUP) {
    const vec4 a = four(p.a, from + i), b = four(p.b, from + i);
    a_squares += dot(a, a);
    b_squares += dot(b, b);
  }
  const float a_factor = factor_of(group_sum(a_squares)), b_factor = factor_of(group_sum(b_squares));
  for (uint i = thread; i < count; i += GROUP) {
    const vec4 sum = four(p.a, from + i) * a_factor * four(p.a_gain, i) +
        four(p.b, from + i) * b_factor * four(p.b_gain, i);
    squares += dot(sum, sum);
  }
  const float factor = factor_of(group_sum(squares));
  const float times = uint64_t(p.factor) != 0 ? p.factor.at[0] : 1;
  for (uint i = thread; i < count; i += GROUP) {
    const vec4 sum = four(p.a, from + i) * a_factor * four(p.a_gain, i) +
        four(p.b, from + i) * b_factor * four(p.b_gain, i);
    const vec4 y = times * (four(p.residual, from + i) + p.scale * (sum * factor * four(p.gain, i)));
    vec4_address(uint64_t(p.y)).at[from + i] = y;
    if (uint64_t(p.rounded) == 0) continue;
    store_q8x16(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(p.width), p.width, i,
                uint64_t(p.next_gain) != 0 ? y * four(p.next_gain, i) : y, dot(y, y));
  }
}

void main() {
  chain_wait(chain);
  normalise_row();
  chain_end(chain);
}
