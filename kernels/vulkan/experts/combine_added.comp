// combine_added: y[t] = residual[t] + scale * sum over j of weights[t][j] * x[t][j], in order of j
//   x [tokens][used][width] float32
//   grid    (tokens, width / (4 * GROUP))
//   group   GROUP threads with four neighbouring values each
//   shared  none
//   moves   x, the residual and y once; 1.75 bytes a value for y in q8x16
// The argument block is CombineAddBlock in kernels/abi/sequences.h.
#include "kernels/abi/sequences.h"
#include "kernels/gpu/q8x16.h"
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)
layout(push_constant, scalar) uniform Push { CombineAddBlock p; CHAIN_BEHIND; };

vec4 four(float_address values, uint at) { return vec4_address(uint64_t(values)).at[at]; }

void combine() {
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;  // neighbours round together
  const uint t = gl_WorkGroupID.x, quarter = gl_WorkGroupID.y * GROUP + thread, count = p.width / 4;
  if (t >= live_rows(step_of(p.step), kRowsTokens) || quarter >= count) return;
  vec4 sum = vec4(0);
  for (uint j = 0; j < p.used; ++j)
    sum += p.weights.at[t * p.used + j] * four(p.x, (t * p.used + j) * count + quarter);
  const vec4 y = four(p.residual, t * count + quarter) + p.scale * sum;
  vec4_address(uint64_t(p.y)).at[t * count + quarter] = y;
  if (uint64_t(p.rounded) == 0) return;
  store_q8x16(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(p.width), p.width, quarter,
              uint64_t(p.next_gain) != 0 ? y * four(p.next_gain, quarter) : y, dot(y, y));
}

void main() {
  chain_wait(chain);
  combine();
  chain_end(chain);
}
