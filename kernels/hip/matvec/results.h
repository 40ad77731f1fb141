// What matmul_rows and matmul_rows_float make of the sums of a result: bias, then rotation, gate or residual,
// then the store to y or into a page of the KV cache. A result is one row of y, a gate of two sums, or two
// rows that rotate together (kPairing*, kernels/abi/ops.h). Block is MatmulRowBlock or MatmulFloatRowBlock.
#pragma once
#include "kernels/hip/attention/cache.h"
#include "kernels/hip/elementwise/activation.h"

// What a result needs beside its sums.
struct Operands {
  vec2 bias;      // of both sums
  vec2 rotation;  // cosine and sine
  float residual;
};

template <class Block>
DEVICE bool gates(const Block& p) {
  return p.pairing == kPairingGate;
}
template <class Block>
DEVICE bool rotates(const Block& p) {
  return p.pairing >= kPairingNext;
}
template <class Block>
DEVICE uint sums_of(const Block& p) {
  return p.pairing == kPairingNone ? 1 : 2;
}
template <class Block>
DEVICE uint result_count(const Block& p) {
  return rotates(p) ? p.n / 2 : p.n;
}

// The rows of y that result `i` makes; without rotation both are the same row.
template <class Block>
DEVICE uvec2 rows_of_result(const Block& p, uint i) {
  if (!rotates(p)) return uvec2(i, i);
  const uint in_head = i % (p.head_width / 2), first = i / (p.head_width / 2) * p.head_width;
  const uint half_width = p.rope_width / 2;
  if (p.pairing == kPairingHalves && in_head < half_width)
    return uvec2(first + in_head, first + in_head + half_width);
  return uvec2(first + 2 * in_head, first + 2 * in_head + 1);
}

// The matrices of the results.
template <class Block>
struct ResultRows {
  const Block& p;
  uint64_t row_bytes;
};
template <class Block>
DEVICE uint64_t weights_of(const ResultRows<Block>& source, uint result, bool second) {
  const Block& p = source.p;
  const uvec2 rows = rows_of_result(p, result);
  return (uint64_t)(second && gates(p) ? p.weight2 : p.weight) +
         (second ? rows.y : rows.x) * source.row_bytes;
}

template <class Block>
DEVICE Operands operands_of(const Block& p, uint token, uint i) {
  const uvec2 rows = rows_of_result(p, i);
  Operands o = {vec2(0, 0), vec2(1, 0), 0};
  if (p.bias) o.bias = vec2(p.bias[rows.x], p.bias[rows.y]);
  if (p.residual) o.residual = p.residual[token * p.n + rows.x];
  if (rotates(p) && i % (p.head_width / 2) < p.rope_width / 2) {
    const uint at = step_of(p.step)->row[token].position * (p.rope_width / 2) + i % (p.head_width / 2);
    o.rotation = vec2(p.rope[at * 2], p.rope[at * 2 + 1]);
  }
  return o;
}

// Stores value `row` of the token's y, or of its key or value in its page. The cache holds f32 or f16.
template <class Block>
DEVICE void store_row(const Block& p, uint token, uint row, float value) {
  if (!p.page_bytes) {
    p.y[token * p.n + row] = value;
    return;
  }
  const uint head_bytes = cache_head_bytes(p.cache_type, p.head_width), at = row % p.head_width;
  const auto to =
      head_in_page(step_of(p.step), token, (GLOBAL byte*)p.y, p.page_bytes, row / p.head_width, head_bytes);
  if (p.cache_type == kCacheF32)
    ((GLOBAL float*)to)[at] = value;
  else
    ((GLOBAL uint16_t*)to)[at] = f32_to_f16(value);
}

// Stores a result and returns its y; of two rows that rotate together, that of the first.
template <class Block>
DEVICE float finish(const Block& p, uint token, uvec2 rows, vec2 sums, const Operands& o) {
  sums += o.bias;
  if (rotates(p)) {
    store_row(p, token, rows.y, sums.x * o.rotation.y + sums.y * o.rotation.x);
    sums.x = sums.x * o.rotation.x - sums.y * o.rotation.y;
  }
  const float y = gates(p) ? gated(p.activation, sums.x, sums.y) : sums.x + o.residual;
  store_row(p, token, rows.x, y);
  return y;
}
