// kv_write_plain: stores keys or values of the step's tokens in their pages.
//   pool[page of t][h][position of t % kPageTokens] = x[t][h]
//     where x [tokens][heads][head_width], in the cache's type
//   grid    (tokens)
//   group   one token with all its heads
//   scratch none
//   moves   x once, and as many values of the cache's type
// The argument block is KvWriteBlock in kernels/abi/ops.h.
#include "kernels/cpu/row_math.h"
#include "kernels/cpu/scratch.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const KvWriteBlock& b = *(const KvWriteBlock*)block;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, kRowsTokens);
  for (uint32_t t = first_group; t < first_group + group_count && t < live; ++t) {
    const float* x = (const float*)b.x + uint64_t(t) * b.heads * b.head_width;
    for (uint32_t h = 0; h < b.heads; ++h)
      write_head(step, step->row[t], b.pool, b.page_bytes, b.cache_type, h, x + h * b.head_width,
                 b.head_width);
  }
}
