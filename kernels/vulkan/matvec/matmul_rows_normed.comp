// matmul of a few tokens, then the norm of what it has made and a residual (MatmulNormBlock, kernels/abi/ops.h).
//   grid, group   as in matmul_rows
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { MatmulNormBlock p; };

#include "kernels/vulkan/matvec/rows_normed.h"
#include "kernels/vulkan/matvec/rows_group_q8x16.h"

void main() {
  uint64_t rows_held[kStreams];
  Weights w[kStreams];
  hold(rows_held, w);
  dot_begin();
  chain_wait(uint64_t(p.chain));
  const uint t = gl_WorkGroupID.x;
  const float bias = own_bias();
  make_all(rows_held, w);
  const bool live = t == 0 || t < step_of(p.step).state.token_count;  // a step has a token
  barrier();
  if (live) finish(t, bias);
  chain_end(uint64_t(p.chain));
}
