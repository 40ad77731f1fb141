// convert_plain: y = x in the activation format q8 (kernels/abi/q8.h)     x [rows][depth] float32
//   grid    (rows)
//   group   one row
//   scratch none
//   moves   4 bytes of x and 1.25 bytes of y a value
// The argument block is ConvertBlock in kernels/abi/ops.h.
#include "kernels/cpu/convert/q8_form.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const ConvertBlock& b = *(const ConvertBlock*)block;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, b.rows_of);
  for (uint32_t i = first_group; i < first_group + group_count && i < live; ++i) {
    const float* x = (const float*)b.x + uint64_t(source_row(step, b.rows_of, i)) * b.depth;
    q8_row(x, b.depth, (uint8_t*)b.y + uint64_t(i) * q8_row_bytes(b.depth));
  }
}
