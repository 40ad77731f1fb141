// cast_plain: y[i][k] = x[i][k] in another type     [rows][width] float32, float16 or bfloat16
//   grid    (rows)
//   group   one row
//   scratch none
//   moves   x and y once
// The argument block is CastBlock in kernels/abi/cast.h.
#include "kernels/abi/cast.h"
#include "kernels/cpu/half.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

namespace {

uint16_t f32_to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  const bool nan = magnitude_bits(value) > 0x7f800000u;
  return uint16_t(nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

template <class To>
void store_row(const CastBlock& b, const uint8_t* x, uint8_t* y, To&& to) {
  for (uint32_t i = 0; i < b.width; ++i) {
    float value;
    if (b.x_type == kCastF32) __builtin_memcpy(&value, x + 4 * uint64_t(i), sizeof value);
    else value = b.x_type == kCastF16 ? load_f16(x + 2 * uint64_t(i)) : load_bf16(x + 2 * uint64_t(i));
    to(y, i, value);
  }
}

void cast_row(const CastBlock& b, const uint8_t* x, uint8_t* y) {
  if (b.y_type == kCastF32)
    store_row(b, x, y, [](uint8_t* to, uint64_t i, float v) { __builtin_memcpy(to + 4 * i, &v, sizeof v); });
  else if (b.y_type == kCastF16)
    store_row(b, x, y, [](uint8_t* to, uint64_t i, float v) { store_u16(to + 2 * i, f32_to_f16(v)); });
  else
    store_row(b, x, y, [](uint8_t* to, uint64_t i, float v) { store_u16(to + 2 * i, f32_to_bf16(v)); });
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const CastBlock& b = *(const CastBlock*)block;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, b.rows_of);
  const uint64_t x_bytes = uint64_t(b.x_stride) * (b.x_type == kCastF32 ? 4 : 2);
  const uint64_t y_bytes = uint64_t(b.y_stride) * (b.y_type == kCastF32 ? 4 : 2);
  for (uint32_t i = first_group; i < first_group + group_count && i < live; ++i)
    cast_row(b, (const uint8_t*)b.x + source_row(step, b.rows_of, i) * x_bytes, (uint8_t*)b.y + i * y_bytes);
}
