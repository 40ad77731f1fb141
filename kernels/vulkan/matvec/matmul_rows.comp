// matmul of a few tokens, alone or with what is fused around it (MatmulRowBlock, kernels/abi/ops.h).
//   grid   (tokens; kGroupResults results to a group): groups that read the same weights follow each other
//   group  makes sums (rows_group.h), that its first kGroupResults threads finish
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { MatmulRowBlock p; };

#include "kernels/vulkan/matvec/rows_sums.h"
#include "kernels/vulkan/matvec/rows_y.h"
#include "kernels/vulkan/matvec/rows_group_q8x16.h"

void main() {
  uint64_t rows_held[kStreams];
  Weights w[kStreams];
  hold(rows_held, w);
  dot_begin();
  chain_wait(uint64_t(p.chain));
  const uint i = gl_LocalInvocationIndex, result = first_result() + i;
  const bool finishes = i < kGroupResults && result < result_count();
  const uvec2 rows = rows_of_result(finishes ? result : 0);
  Operands operands;
  if (finishes) operands = operands_of(result, rows);
  float gain = 1;
  if (finishes && uint64_t(p.gain) != 0) gain = p.gain.at[rows.x];
  float squares = 0;
  if (p.epsilon >= 0) squares = squares_of_thread(row_of_x());
  make_all(rows_held, w);
  if (p.epsilon >= 0) share_squares(squares, gl_SubgroupID);
  // Asked here, since NVIDIA's compiler finds the better order of the products then. A step has a token.
  const bool live = gl_WorkGroupID.x == 0 || gl_WorkGroupID.x < step_of(p.step).state.token_count;
  barrier();
  if (finishes && live) {
    const vec2 sums = sums_of_slices(i);
    const float y = finish(rows, p.epsilon >= 0 ? sums * norm_factor(kSubgroups, kDepth, p.epsilon) : sums, operands);
    made[i] = vec2(y * gain, y);
  }
  if (uint64_t(p.rounded) != 0) {
    barrier();
    if (live && i < kStoring)
      store_made(uint64_t(p.rounded) + uint64_t(gl_WorkGroupID.x) * q8x16_row_bytes(p.n), p.n, gl_WorkGroupID.y);
  }
  chain_end(uint64_t(p.chain));
}
