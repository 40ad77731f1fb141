// kv_write_plain: stores keys or values of the step's tokens in their pages.
//   pool[page of t][h][position of t % kPageTokens] = x[t][h]
//     where x [tokens][heads][head_width], in the cache's type
//   grid    (tokens, heads * head_width / GROUP)
//   group   GROUP threads with a value each; in a q8_0 cache every 32nd thread stores a block of 32 values
//   shared  none
//   moves   x once, and as many values of the cache's type
// The argument block is KvWriteBlock in kernels/abi/ops.h.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/attention/cache.h"

layout(push_constant, scalar) uniform Push { KvWriteBlock p; CHAIN_BEHIND; };

void write_block(uint x, uint64_t to) {
  float values[32];
  [[unroll]] for (uint i = 0; i < 32; ++i) values[i] = p.x.at[x + i];
  store_q8_0(to, values);
}

void write_value() {
  const uint t = gl_WorkGroupID.x, i = gl_WorkGroupID.y * GROUP + gl_LocalInvocationIndex;
  StepState_address step = step_of(p.step);
  if (t >= live_rows(step, kRowsTokens) || i >= p.heads * p.head_width) return;
  const uint h = i / p.head_width, k = i % p.head_width, x = t * p.heads * p.head_width + i;
  const uint64_t to = head_in_page(step, step.state.row[t], uint64_t(p.pool), p.page_bytes, h,
                                   cache_head_bytes(p.cache_type, p.head_width));
  if (p.cache_type == kCacheF32) float_address(to).at[k] = p.x.at[x];
  else if (p.cache_type == kCacheF16) uint16_address(to).at[k] = uint16_t(f32_to_f16(p.x.at[x]));
  else if (k % 32 == 0) write_block(x, to + k / 32 * 34);
}

void main() {
  chain_wait(chain);
  write_value();
  chain_end(chain);
}
