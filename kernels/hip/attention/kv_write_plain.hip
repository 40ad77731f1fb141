// kv_write_plain: stores keys or values of the step's tokens in their pages.
//   pool[page of t][h][position of t % kPageTokens] = x[t][h]
//     where x [tokens][heads][head_width], in the cache's type
//   grid    (tokens, heads * head_width / GROUP)
//   group   GROUP threads with a value each; in a q8_0 cache every 32nd thread stores a block of 32 values
//   shared  none
//   moves   x once, and as many values of the cache's type
// The argument block is KvWriteBlock in kernels/abi/ops.h.
#include "kernels/hip/attention/cache.h"

DEVICE void write_block(const GLOBAL float* x, GLOBAL byte* to) {
  float values[32];
  for (uint i = 0; i < 32; ++i) values[i] = x[i];
  store_q8_0(to, values);
}

KERNEL(GROUP) void KERNEL_NAME(KvWriteBlock p) {
  const Step step = step_of(p.step);
  const uint t = group_x(), i = group_y() * GROUP + thread_x();
  if (t >= live_rows(step, kRowsTokens) || i >= p.heads * p.head_width) return;
  const uint h = i / p.head_width, k = i % p.head_width;
  const auto x = p.x + t * p.heads * p.head_width + i;
  const auto to =
      head_in_page(step, t, p.pool, p.page_bytes, h, cache_head_bytes(p.cache_type, p.head_width));
  if (p.cache_type == kCacheF32)
    ((GLOBAL float*)to)[k] = *x;
  else if (p.cache_type == kCacheF16)
    ((GLOBAL uint16_t*)to)[k] = f32_to_f16(*x);
  else if (k % 32 == 0)
    write_block(x, to + k / 32 * kQ8BlockBytes);
}
