// rope_plain: y[t][h] = x[t][h] with its first rope_width values rotated by the position of t     float32
//   grid    (tokens)
//   group   one token with all its heads
//   scratch none
//   moves   the rotated values of x and y once; the table's row once for each head, from the caches
// The argument block is RopeBlock in kernels/abi/ops.h.
#include "kernels/cpu/row_math.h"
#include "kernels/cpu/scratch.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const RopeBlock& b = *(const RopeBlock*)block;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, kRowsTokens);
  for (uint32_t t = first_group; t < first_group + group_count && t < live; ++t) {
    const float* table = rope_row(b.table, step->row[t].position, b.rope_width);
    for (uint64_t head = uint64_t(t) * b.heads; head < (uint64_t(t) + 1) * b.heads; ++head)
      rope_head(table, b.rope_width, b.rope_halves, (const float*)b.x + head * b.x_stride,
                (float*)b.y + head * b.y_stride);
  }
}
