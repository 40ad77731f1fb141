// The parts that fused and unfused rows share: root mean square, rotation, and writing a head into
// its page. Sharing them is what makes fusion invisible in the bits.
#pragma once
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/quant/f16.h"
#include "kernels/cpu/quant/f32.h"
#include "kernels/cpu/quant/q8_0.h"
#include "kernels/cpu/step.h"

namespace {

// 1 / root mean square of a row.
inline float norm_factor(const float* x, uint32_t width, float epsilon) {
  return 1.f / __builtin_sqrtf(dot(x, x, width) / float(width) + epsilon);
}

inline void norm_apply(const float* x, const float* gain, float factor, uint32_t width, float* y) {
  for (uint32_t i = 0; i < width; ++i) y[i] = x[i] * factor * gain[i];
}

// Rotates a head by one row of the table, [rope_width / 2][cos, sin]. y may be x.
inline void rope_head(const float* table, uint32_t rope_width, uint32_t halves, const float* x, float* y) {
  const uint32_t pairs = rope_width / 2;
  for (uint32_t i = 0; i < pairs; ++i) {
    const uint32_t a = halves ? i : 2 * i, b = halves ? i + pairs : 2 * i + 1;
    const float c = table[2 * i], s = table[2 * i + 1];
    const float xa = x[a], xb = x[b];
    y[a] = xa * c - xb * s;
    y[b] = xa * s + xb * c;
  }
}

inline const float* rope_row(uint64_t table, uint32_t position, uint32_t rope_width) {
  return (const float*)table + uint64_t(position) * rope_width;
}

enum CacheType : uint32_t {
#define CACHE_TYPE(name) kCache_##name,
#include "kernels/abi/cache_types.def"
#undef CACHE_TYPE
};

// Bytes of one head at one position.
inline uint32_t cache_head_bytes(uint32_t type, uint32_t width) {
  switch (type) {
#define CACHE_TYPE(name) \
  case kCache_##name:    \
    return width / name::kBlock * name::kBlockBytes;
#include "kernels/abi/cache_types.def"
#undef CACHE_TYPE
  }
  return 0;
}

inline void cache_store(uint32_t type, const float* x, uint32_t width, uint8_t* to) {
  switch (type) {
#define CACHE_TYPE(name) \
  case kCache_##name:    \
    return name::encode(x, width, to);
#include "kernels/abi/cache_types.def"
#undef CACHE_TYPE
  }
}

inline void cache_load(uint32_t type, const uint8_t* from, uint32_t width, float* x) {
  switch (type) {
#define CACHE_TYPE(name) \
  case kCache_##name:    \
    return name::values(from, width, x);
#include "kernels/abi/cache_types.def"
#undef CACHE_TYPE
  }
}

// Writes head `h` of the token in `row` into its page.
inline void write_head(const StepState* step, const StepRow& row, uint64_t pool, uint32_t page_bytes,
                       uint32_t type, uint32_t h, const float* x, uint32_t width) {
  const uint64_t page = page_of(step, row.sequence, row.position);
  const uint64_t slot = uint64_t(h) * kPageTokens + row.position % kPageTokens;
  cache_store(type, x, width, (uint8_t*)pool + page * page_bytes + slot * cache_head_bytes(type, width));
}

}  // namespace
