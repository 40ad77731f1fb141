// Rows of activations to the format q8 by the q8_row of the instruction set that was included before.
#pragma once
#include "kernels/cpu/step.h"

namespace {

inline void convert_rows(const ConvertBlock& b, uint32_t first_group, uint32_t group_count) {
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, b.rows_of);
  for (uint32_t i = first_group; i < first_group + group_count && i < live; ++i) {
    const float* x = (const float*)b.x + uint64_t(source_row(step, b.rows_of, i)) * b.depth;
    q8_row(x, b.depth, (uint8_t*)b.y + uint64_t(i) * q8_row_bytes(b.depth));
  }
}

}  // namespace
