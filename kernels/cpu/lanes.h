// Sums in one fixed order: 16 partial sums, lane i taking elements i, i + 16, ..., then a fixed tree.
// Every kernel row that must give equal bits adds through these, so that neither fusion nor tiling
// nor the bucket can change a result.
#pragma once
#include <stdint.h>

namespace {

typedef float Float4 __attribute__((vector_size(16)));  // one register of every baseline we build for
constexpr uint32_t kLanes = 16;

struct Lanes {
  Float4 part[4];
};

inline Float4 load4(const float* from) {
  Float4 value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

inline void store4(float* to, Float4 value) { __builtin_memcpy(to, &value, sizeof value); }

inline float sum_of(const Lanes& lanes) {
  const Float4 sum = (lanes.part[0] + lanes.part[1]) + (lanes.part[2] + lanes.part[3]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// lanes += a * b over `count` elements. Only the last call of a sum may have a count that is no
// multiple of 16; nothing past a[count - 1] or b[count - 1] is read.
inline void accumulate(const float* a, const float* b, uint32_t count, Lanes* lanes) {
  Float4 s0 = lanes->part[0], s1 = lanes->part[1], s2 = lanes->part[2], s3 = lanes->part[3];
  uint32_t k = 0;
  for (; k + kLanes <= count; k += kLanes) {
    s0 += load4(a + k) * load4(b + k);
    s1 += load4(a + k + 4) * load4(b + k + 4);
    s2 += load4(a + k + 8) * load4(b + k + 8);
    s3 += load4(a + k + 12) * load4(b + k + 12);
  }
  Lanes sum = {{s0, s1, s2, s3}};
  for (uint32_t i = 0; k + i < count; ++i) sum.part[i / 4][i % 4] += a[k + i] * b[k + i];
  *lanes = sum;
}

inline float dot(const float* a, const float* b, uint32_t count) {
  Lanes lanes = {};
  accumulate(a, b, count, &lanes);
  return sum_of(lanes);
}

}  // namespace
