// What matmul_rows and matmul_rows_float make of the sums of a result: bias, then rotation, gate or residual,
// then the store to y or into a page of the KV cache. A result is one row of y, a gate of two sums, or two
// rows that rotate together (kPairing, kernels/abi/ops.h). A group makes results first_result() ..
// first_result() + kGroupResults - 1 of `token`.
//
// Before it includes this file the kernel declares its argument block `p`, a MatmulRowBlock or a
// MatmulFloatRowBlock, and the build includes quant/<type>.h and dot/<type>.h. The kernel sets `token`.
#ifndef GRETA_VULKAN_MATVEC_RESULTS_H
#define GRETA_VULKAN_MATVEC_RESULTS_H
#include "kernels/vulkan/elementwise/activation.h"
#include "kernels/vulkan/step.h"

layout(constant_id = 3) const uint kPairing = kPairingNone;
const bool kGates = kPairing == kPairingGate, kRotates = kPairing >= kPairingNext;
const uint kSums = kPairing == kPairingNone ? 1 : 2;  // sums of a result

uint token;  // whose result a thread finishes

uint first_result() { return gl_WorkGroupID.y * kGroupResults; }
uint result_count() { return kRotates ? p.n / 2 : p.n; }

// The rows of y that result `i` makes; without rotation both are the same row.
uvec2 rows_of_result(uint i) {
  if (!kRotates) return uvec2(i);
  const uint in_head = i % (p.head_width / 2), first = i / (p.head_width / 2) * p.head_width;
  if (kPairing == kPairingNext) return first + 2 * in_head + uvec2(0, 1);
  const uint half_width = p.rope_width / 2;
  return first + (in_head < half_width ? uvec2(in_head, in_head + half_width) : 2 * in_head + uvec2(0, 1));
}

uint64_t weights_of(uint result, bool second) {
  const uvec2 rows = rows_of_result(result);
  const uint64_t weight = second && kGates ? uint64_t(p.weight2) : uint64_t(p.weight);
  return weight + (second ? rows.y : rows.x) * quant_row_bytes(kDepth);
}

// What a result needs beside its sums. It is loaded before the products.
struct Operands {
  vec2 bias;      // of both sums
  vec2 rotation;  // cosine and sine
  float residual;
};

Operands operands_of(uint i, uvec2 rows) {
  Operands o = Operands(vec2(0), vec2(1, 0), 0);
  if (uint64_t(p.bias) != 0) o.bias = vec2(p.bias.at[rows.x], p.bias.at[rows.y]);
  if (uint64_t(p.residual) != 0) o.residual = p.residual.at[token * p.n + rows.x];
  if (kRotates && i % (p.head_width / 2) < p.rope_width / 2) {
    const uint at = step_of(p.step).state.row[token].position * (p.rope_width / 2) + i % (p.head_width / 2);
    o.rotation = vec2_address(p.rope).at[at];
  }
  return o;
}

// Stores value `row` of the token's key or value in its page. The cache holds f32 or f16.
void store_in_page(uint row, float value) {
  const StepRow at_row = step_of(p.step).state.row[token];
  const uint position = at_row.position;
  const uint64_t page =
      uint64_t(p.y) + uint64_t(page_of(step_of(p.step), at_row.sequence, position)) * p.page_bytes;
  const uint64_t head_position = uint64_t(row / p.head_width) * kPageTokens + position % kPageTokens;
  const uint64_t at = head_position * p.head_width + row % p.head_width;
  if (p.cache_type == 0) float_address(page).at[uint(at)] = value;
  else float16_address(page).at[uint(at)] = float16_t(value);
}

void store_row(uint row, float value) {
  if (p.page_bytes != 0) store_in_page(row, value);
  else p.y.at[token * p.n + row] = value;
}

// Stores a result and returns its y; of two rows that rotate together, that of the first.
float finish(uvec2 rows, vec2 sums, Operands o) {
  sums += o.bias;
  if (kRotates) {
    store_row(rows.y, sums.x * o.rotation.y + sums.y * o.rotation.x);
    sums.x = sums.x * o.rotation.x - sums.y * o.rotation.y;
  }
  const float y = kGates ? gated(p.activation, sums.x, sums.y) : sums.x + o.residual;
  store_row(rows.x, y);
  return y;
}

#endif
