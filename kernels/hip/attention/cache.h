// The types of the KV cache (kernels/abi/cache_types.def), and where the values of a head lie in a page.
#pragma once
#include "kernels/hip/math.h"
#include "kernels/hip/step.h"

constexpr uint kCacheF32 = 0;
constexpr uint kCacheF16 = 1;
constexpr uint kCacheQ8 = 2;  // q8_0: f16 d, int8 q[32]
constexpr uint kQ8BlockBytes = 34;

// Bytes of one head at one position.
DEVICE uint cache_head_bytes(uint type, uint width) {
  return type == kCacheF32 ? width * 4 : type == kCacheF16 ? width * 2 : width / 32 * kQ8BlockBytes;
}

// Value i of the head at `head`.
DEVICE float cache_value(uint type, const GLOBAL byte* head, uint i) {
  if (type == kCacheF32) return ((const GLOBAL float*)head)[i];
  if (type == kCacheF16) return float(((const GLOBAL float16_t*)head)[i]);
  const auto block = head + i / 32 * kQ8BlockBytes;
  return float((signed char)block[2 + i % 32]) * float(load<float16_t>(block));
}

// The address of head `head` of token t in its page of the pool.
DEVICE GLOBAL byte* head_in_page(Step step, uint t, GLOBAL byte* pool, uint page_bytes, uint head,
                                 uint head_bytes) {
  const uint position = step->row[t].position, slot = head * kPageTokens + position % kPageTokens;
  return pool + uint64_t(page_of(step, step->row[t].sequence, position)) * page_bytes + slot * head_bytes;
}

// Stores 32 values as a block of q8_0: d is the largest magnitude / 127, rounded to a half after q is found.
// Where a value is not finite, the sum of the rounded ones is not either, and d becomes NaN.
DEVICE void store_q8_0(GLOBAL byte* to, const float (&values)[32]) {
  float maximum = 0, sum = 0;
  for (uint i = 0; i < 32; ++i) maximum = max(maximum, __builtin_fabsf(values[i]));
  const float d = maximum / 127, inverse = d > 0 ? 1 / d : 0;
  const auto halves = (GLOBAL uint16_t*)to;
  for (uint i = 0; i < 32; i += 2) {
    const float low = roundEven(values[i] * inverse), high = roundEven(values[i + 1] * inverse);
    sum += low + high;
    halves[1 + i / 2] = (int(low) & 0xff) | (int(high) & 0xff) << 8;
  }
  halves[0] = f32_to_f16(if_finite(sum, d));
}
