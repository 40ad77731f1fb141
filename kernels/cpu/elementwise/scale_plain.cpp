// scale_plain: y[i][j] = scales[e] * y[i][j] + bias[e], for the expert e = ids[i][j] of a slot, or 0
//   y [rows][slots][width / slots] float32
//   grid    (rows)
//   group   one row
//   scratch none
//   moves   y twice
// The argument block is ScaleBlock in kernels/abi/ops.h.
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const ScaleBlock& b = *(const ScaleBlock*)block;
  const uint32_t live = live_rows(step_of(b.step), b.rows_of), width = b.width / b.slots;
  for (uint32_t i = first_group; i < first_group + group_count && i < live; ++i)
    for (uint32_t j = 0; j < b.slots; ++j) {
      const uint64_t slot = uint64_t(i) * b.slots + j;
      const uint32_t id = b.ids ? ((const uint32_t*)b.ids)[slot] : 0;
      const uint32_t expert = id < b.experts ? id : b.experts - 1;  // never past the scales
      const float scale = ((const float*)b.scales)[expert];
      const float* bias = b.bias ? (const float*)b.bias + uint64_t(expert) * width : nullptr;
      float* y = (float*)b.y + slot * width;
      for (uint32_t k = 0; k < width; ++k) y[k] = scale * y[k] + (bias ? bias[k] : 0.f);
    }
}
