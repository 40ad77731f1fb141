// matmul of a few tokens with weights that are floats, then the norm of what it has made and a residual (MatmulNormBlock,
// kernels/abi/ops.h).
//   grid, group   as in matmul_rows_float
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)

layout(push_constant, scalar) uniform Push { MatmulNormBlock p; };

uint token = 0;
const bool kNorms = false;
uint64_t row_of_x() { return uint64_t(p.x) + uint64_t(token) * kDepth * 4; }
uint64_t gain_of_x() { return 0; }

#include "kernels/vulkan/matvec/rows_normed.h"
#include "kernels/vulkan/matvec/rows_group_float.h"

void main() {
  uint64_t rows_held[kStreams];
  Weights w[kStreams];
  hold(rows_held, w);
  chain_wait(uint64_t(p.chain));
  const float bias = own_bias();
  const uint live = live_rows(step_of(p.step), kRowsTokens);
  for (;;) {
    make_all(rows_held, w);
    barrier();
    finish(token, bias);
    if (++token >= live) break;  // a step has a token
    load_held(rows_held, w);
  }
  chain_end(uint64_t(p.chain));
}
