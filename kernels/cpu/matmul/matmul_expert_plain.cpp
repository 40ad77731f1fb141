// matmul_expert_plain: the product with experts for any type, shape and number of tokens; the definition of
// right.
//   y[slot][n] = sum over k of W[expert][n][k] * x[slot][k] + bias[expert][n]
//     where x float32; a slot is an expert of a token
//   grid    (n / TILE, slots of all tokens)
//   group   TILE rows of y of one slot. Sums run in the order of matmul_plain
//   scratch none
//   moves   the weights of each slot's expert once; x once for each row of y, from the caches; y
// The argument block is MatmulExpertBlock in kernels/abi/ops.h.
#include "kernels/cpu/block_order.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

namespace {

using Weight = WEIGHT;
constexpr uint32_t kColumns = 256;  // decoded at once

float row_dot(const uint8_t* weight, uint32_t n, uint32_t depth, const float* x) {
  float w[kColumns];
  Lanes sum = {};
  for (uint32_t k = 0; k < depth; k += kColumns) {
    const uint32_t count = depth - k < kColumns ? depth - k : kColumns;
    decode_columns<Weight>(weight, n, depth, k, count, w);
    accumulate(w, x + k, count, &sum);
  }
  return sum_of(sum);
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const MatmulExpertBlock& b = *(const MatmulExpertBlock*)block;
  const uint32_t tiles = (b.n + b.tile - 1) / b.tile;
  const uint32_t slots = live_rows(step_of(b.step), kRowsTokens) * b.used;
  for (uint32_t group = first_group; group < first_group + group_count; ++group) {
    const uint32_t slot = group / tiles, n = group % tiles * b.tile;
    if (slot >= slots) return;
    const uint32_t expert = b.ids ? ((const uint32_t*)b.ids)[slot] : slot % b.used;
    if (expert - b.first >= b.experts) continue;
    const uint8_t* weight =
        (const uint8_t*)b.weight + (expert - b.first) * Weight::matrix_bytes(b.n, b.depth);
    const uint32_t x_row = b.x_slots == 1 ? slot / b.used : slot;
    const float* x = (const float*)b.x + uint64_t(x_row) * b.x_stride;
    const float* bias = b.bias ? (const float*)b.bias + uint64_t(expert) * b.n : nullptr;
    float* y = (float*)b.y + uint64_t(slot) * b.y_stride;
    for (uint32_t r = n; r < n + b.tile && r < b.n; ++r)
      y[r] = row_dot(weight, r, b.depth, x) + (bias ? bias[r] : 0.f);
  }
}
