// scan_plain: the three recurrences of kernels/abi/scan.h, row by row; the definition of right.
//   grid    (tiles of kTile columns, runs)
//   group   the columns of a tile, over all rows of a run
//   scratch none; the state is changed in place
//   moves   the state once in and once out for each row of the run, keys and queries once for each tile
// Each row is done before the next one, so the bits do not depend on where a text is cut.
// The argument block is ScanBlock in kernels/abi/scan.h.
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/scan/parts.h"
#include "kernels/cpu/scan/rates.h"
#include "kernels/cpu/scratch.h"

namespace {

constexpr uint32_t kTile = 16;  // as in kernels/cpu/CMakeLists.txt

// What all columns of a head share in a row.
struct Head {
  const float* key;
  const float* query;
  float key_factor, query_factor;  // 1, or what makes the length 1
  float rate, decay, strength;
};

float length_factor(const float* x, uint32_t width, float epsilon) {
  return epsilon < 0 ? 1.f : 1.f / __builtin_sqrtf(dot(x, x, width) + epsilon);
}

Head head_of(const ScanBlock& b, uint32_t t, uint32_t h) {
  const uint64_t dt_at = uint64_t(t) * b.dt_stride + h;
  Head head = {key_of(b, t, h), query_of(b, t, h), 1, 1, 0, 1, 0};
  head.key_factor = length_factor(head.key, b.key_width, b.epsilon);
  head.query_factor = length_factor(head.query, b.key_width, b.epsilon);
  head.rate = softplus_f32(((const float*)b.dt)[dt_at] + (b.dt_bias ? ((const float*)b.dt_bias)[h] : 0.f));
  if (scan_form(b.form) != kScanSelective) head.decay = exp_f32(((const float*)b.a)[h] * head.rate);
  if (scan_form(b.form) == kScanDelta) {
    head.strength = sigmoid_f32(((const float*)b.with_value)[dt_at]);
    head.query_factor /= __builtin_sqrtf(float(b.key_width));
  }
  return head;
}

// `count` columns of one head, in one row of the step. s[j * value_width + i] is value j of the key.
void step_columns(const ScanBlock& b, const Head& head, uint32_t h, const float* value, uint32_t count,
                  float* s, float* y) {
  const uint32_t form = scan_form(b.form);
  float from_key[kTile] = {}, from_query[kTile] = {}, change[kTile];
  for (uint32_t j = 0; j < b.key_width; ++j) {
    float* row = s + uint64_t(j) * b.value_width;
    const float decay =
        form != kScanSelective ? head.decay : exp_f32(((const float*)b.a)[h * b.key_width + j] * head.rate);
    for (uint32_t i = 0; i < count; ++i) {
      row[i] *= decay;
      from_key[i] += row[i] * head.key[j];
    }
  }
  for (uint32_t i = 0; i < count; ++i)
    change[i] =
        head.key_factor * (form == kScanDelta ? head.strength * (value[i] - head.key_factor * from_key[i])
                                              : head.rate * value[i]);
  for (uint32_t j = 0; j < b.key_width; ++j) {
    float* row = s + uint64_t(j) * b.value_width;
    for (uint32_t i = 0; i < count; ++i) {
      row[i] += change[i] * head.key[j];
      from_query[i] += row[i] * head.query[j];
    }
  }
  const float skip = skip_of(b, h);
  for (uint32_t i = 0; i < count; ++i) y[i] = head.query_factor * from_query[i] + skip * value[i];
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const ScanBlock& b = *(const ScanBlock*)block;
  for_each_scan(b, kTile, first_group, group_count, [&](const ScanPart& part) {
    for (uint32_t t = part.run.first; t < part.run.first + part.run.count; ++t) {
      const float* value = (const float*)b.value + uint64_t(t) * b.value_stride + part.column;
      float* y = (float*)b.y + uint64_t(t) * b.heads * b.value_width + part.column;
      step_columns(b, head_of(b, t, part.head), part.head, value, part.count, part.state, y);
    }
  });
}
