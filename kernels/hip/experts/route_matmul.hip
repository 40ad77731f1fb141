// route_matmul: the router's product of a few tokens, with the norm before it, and the choice of experts.
//   logits[t][e] = logit_bias[e] + sum over k of W[e][k] * norm(x[t])[k]
//     where W [experts][depth] and x [tokens][depth] float32; then route
//   grid    (experts, tokens)
//   group   GROUP threads make one logit; a token's last group chooses its experts (experts/route.h)
//   shared  8 bytes for each wave; the arrays of experts/route.h
//   moves   W once; W for further tokens, x and gain from the caches; then the bytes of route_plain
// The argument block is RouteMatmulBlock in kernels/abi/ops.h.
#include "kernels/hip/experts/route.h"
#include "kernels/hip/group_ticket.h"

SHARED vec2 wave_sums[GROUP / kWave];  // the sum of products, and that of squares of x

// Leaves the sums of each wave in shared memory.
DEVICE void add_products(const RouteMatmulBlock& p, uint t, uint expert) {
  const uint64_t x_row = (uint64_t)p.x + t * p.depth * 4;
  const uint64_t weight = (uint64_t)p.weight + uint64_t(expert) * p.depth * 4;
  const uint fours = p.depth / 4;
  float products = 0, squares = 0;
#pragma unroll 4
  for (uint i = thread_x(); i < fours; i += GROUP) {
    const vec4 w = load_streamed<vec4>(weight + i * 16), x = load<vec4>(x_row + i * 16);
    products += dot(w, p.gain ? x * load<vec4>(p.gain + i * 4) : x);
    squares += dot(x, x);
  }
  products = wave_sum(products);
  squares = wave_sum(squares);
  if (lane() == 0) wave_sums[wave_index()] = vec2(products, squares);
}

DEVICE float logit(const RouteMatmulBlock& p, uint expert) {
  vec2 sums = vec2(0);
  for (uint i = 0; i < GROUP / kWave; ++i) sums += wave_sums[i];
  if (p.gain) sums.x /= __builtin_sqrtf(sums.y / float(p.depth) + p.epsilon);
  return p.logit_bias ? sums.x + p.logit_bias[expert] : sums.x;
}

KERNEL(GROUP) void KERNEL_NAME(RouteMatmulBlock p) {
  const uint expert = group_x(), t = group_y();
  if (t >= live_rows(step_of(p.step), kRowsTokens)) return;
  add_products(p, t, expert);
  group_barrier();
  if (thread_x() == 0) p.logits[t * p.experts + expert] = logit(p, expert);
  if (is_last_group(p.counters, kCounterCount - 1 - t, p.experts)) route(p, t);
}
