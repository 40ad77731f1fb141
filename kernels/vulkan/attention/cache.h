// The types of the KV cache (kernels/abi/cache_types.def), and where the values of a head lie in a page.
#ifndef GRETA_VULKAN_CACHE_H
#define GRETA_VULKAN_CACHE_H
#include "kernels/gpu/math.h"
#include "kernels/gpu/quant.h"
#include "kernels/vulkan/step.h"

#define kCacheF32 0
#define kCacheF16 1
#define kCacheQ8 2  // q8_0: f16 d, int8 q[32]

GRETA_ABI_BUFFER(int8, int8_t, 1)

// Bytes of one head at one position.
uint cache_head_bytes(uint type, uint width) {
  return type == kCacheF32 ? width * 4 : type == kCacheF16 ? width * 2 : width / 32 * 34;
}

// Value i of the head at `head`.
float cache_value(uint type, uint64_t head, uint i) {
  if (type == kCacheF32) return float_address(head).at[i];
  if (type == kCacheF16) return unpackHalf2x16(uint(uint16_address(head).at[i])).x;
  const uint64_t block = head + i / 32 * 34;
  return float(int8_address(block + 2).at[i % 32]) * load_f16(block);
}

// The address of head `head` of a token in its page of the pool.
uint64_t head_in_page(StepState_address step, StepRow row, uint64_t pool, uint page_bytes, uint head,
                      uint head_bytes) {
  const uint slot = head * kPageTokens + row.position % kPageTokens;
  return pool + uint64_t(page_of(step, row.sequence, row.position)) * page_bytes + slot * head_bytes;
}

// The scale of a block of 32 values with magnitudes up to `maximum`, and its inverse. x / scale is rounded to
// int8.
vec2 int8_scale(float maximum) {
  const float d = maximum > 0 ? divide_exactly(maximum, 127) : 0;
  return vec2(d, d > 0 ? divide_exactly(1, d) : 0);
}

// Stores 32 values as a block of q8_0. Where a value is not finite, the sum of the rounded ones is not
// either, and the scale becomes NaN.
void store_q8_0(uint64_t to, float values[32]) {
  float maximum = 0, sum = 0;
  [[unroll]] for (uint i = 0; i < 32; ++i) maximum = max(maximum, abs(values[i]));
  const vec2 scale = int8_scale(maximum);
  [[unroll]] for (uint i = 0; i < 32; i += 2) {
    const float low = roundEven(values[i] * scale.y), high = roundEven(values[i + 1] * scale.y);
    sum += low + high;
    uint16_address(to).at[1 + i / 2] = uint16_t((int(low) & 0xff) | (int(high) & 0xff) << 8);
  }
  uint16_address(to).at[0] = uint16_t(f32_to_f16(if_finite(sum, scale.x)));
}
#endif
