// route_plain: chooses the experts of each token (experts/route.h).
//   ids[t][j], weights[t][j] = the j-th best expert of token t by logits[t], and its weight
//   grid    (tokens)
//   group   GROUP threads
//   shared  4 bytes for each of kMaxExperts keys and choices and of kMaxExpertGroups keys; 8 bytes a wave
//   moves   4 bytes for each expert, read three to four times; 8 bytes for each choice
// The argument block is RouteBlock in kernels/abi/ops.h.
#include "kernels/hip/experts/route.h"

KERNEL(GROUP) void KERNEL_NAME(RouteBlock p) {
  if (group_x() < live_rows(step_of(p.step), kRowsTokens)) route(p, group_x());
}
