// route_plain: chooses the experts of each token (experts/route.h).
//   ids[t][j], weights[t][j] = the j-th best expert of token t by logits[t], and its weight
//   grid    (tokens)
//   group   GROUP threads
//   shared  4 bytes for each of kMaxExperts keys and choices; GROUP * 2 bytes for sums
//   moves   4 bytes for each expert, read three to four times; 8 bytes for each choice
// The argument block is RouteBlock in kernels/abi/ops.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/step.h"

layout(push_constant, scalar) uniform Push { RouteBlock p; CHAIN_BEHIND; };

#include "kernels/vulkan/experts/route.h"  // needs p

void route_row() {
  if (gl_WorkGroupID.x < live_rows(step_of(p.step), kRowsTokens)) route(gl_WorkGroupID.x);
}

void main() {
  chain_wait(chain);
  route_row();
  chain_end(chain);
}
