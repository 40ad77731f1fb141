// The scores of softmax (kernels/abi/softmax.h), four at a time.
#ifndef GRETA_GPU_SOFTMAX_H
#define GRETA_GPU_SOFTMAX_H
#include "kernels/abi/softmax.h"
#include "kernels/gpu/math.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)

#define kMinusInfinity uintBitsToFloat(0xff800000u)

// ln(x) of a number that is 1 or more: with x = 2^n m, and m from 0.7 to 1.4, it is
// n ln 2 + 2 atanh((m - 1) / (m + 1)). NaN and infinity become NaN.
float log_f32(float x) {
  const uint shifted = floatBitsToUint(x) + (0x3f800000u - 0x3f3504f3u);
  const float n = float(int(shifted >> 23) - 127);
  const float m = uintBitsToFloat((shifted & 0x7fffffu) + 0x3f3504f3u);
  const float s = (m - 1) / (m + 1), z = s * s;
  float p = 1.0f / 9;
  p = p * z + 1.0f / 7;
  p = p * z + 1.0f / 5;
  p = p * z + 1.0f / 3;
  p = p * z + 1;
  return if_finite(x, n * 0.693359375f + (2 * s * p - n * 2.12194440e-4f));
}

// A row of x, with its mask, if it has one.
struct SoftmaxRow {
  uint64_t x, mask, y;
  float sink;  // -infinity: none
  bool fours;  // loads and stores may take four values
};

SoftmaxRow softmax_row(SoftmaxBlock p, uint row) {
  SoftmaxRow made;
  made.x = uint64_t(p.x) + uint64_t(row) * p.x_stride * 4;
  made.y = uint64_t(p.y) + uint64_t(row) * p.y_stride * 4;
  made.mask = uint64_t(p.mask);
  if (made.mask != 0) made.mask += uint64_t(row / p.mask_every % p.mask_rows) * p.width * 4;
  made.sink = kMinusInfinity;
  if (uint64_t(p.sinks) != 0)
    made.sink = float_address(uint64_t(p.sinks)).at[row / p.sink_every % p.sink_count];
  made.fours = (p.width | p.x_stride | p.y_stride) % 4 == 0;
  return made;
}

float capped(SoftmaxBlock p, float x) {
  const float z = p.scale * x;
  return p.cap > 0 ? softcap_f32(p.cap, z) : z;
}
vec4 capped(SoftmaxBlock p, vec4 x) {
  for (uint j = 0; j < 4; ++j) x[j] = capped(p, x[j]);
  return x;
}

// Scores 4 * at .. 4 * at + 3; behind the row's end they are -infinity.
vec4 scores(SoftmaxBlock p, SoftmaxRow row, uint at) {
  const bool masks = row.mask != 0;
  if (row.fours) {
    const vec4 made = capped(p, vec4_address(row.x).at[at]);
    return masks ? made + vec4_address(row.mask).at[at] : made;
  }
  vec4 z;
  for (uint j = 0; j < 4; ++j) {
    const uint i = min(4 * at + j, p.width - 1);
    const float made = capped(p, float_address(row.x).at[i]) + (masks ? float_address(row.mask).at[i] : 0);
    z[j] = i == 4 * at + j ? made : kMinusInfinity;
  }
  return z;
}

const uint kHeld = 8;  // fours of scores that a thread keeps in registers; of a row each has every GROUP-th

// The first ones of a thread. No load of a four stands behind a branch of the thread, so that all are under
// way together.
void hold_scores(SoftmaxBlock p, SoftmaxRow row, uint first, uint count, out vec4 held[kHeld]) {
  if (!row.fours) {
    [[unroll]] for (uint j = 0; j < kHeld; ++j) {
      held[j] = vec4(kMinusInfinity);
      if (first + j * GROUP < count) held[j] = scores(p, row, first + j * GROUP);
    }
    return;
  }
  [[unroll]] for (uint j = 0; j < kHeld; ++j)
    held[j] = vec4_address(row.x).at[min(first + j * GROUP, count - 1)];
  [[unroll]] for (uint j = 0; j < kHeld; ++j) held[j] = capped(p, held[j]);
  [[unroll]] for (uint h = 0; h < kHeld && row.mask != 0; h += 4) {
    vec4 mask[4];
    [[unroll]] for (uint j = 0; j < 4; ++j)
      mask[j] = vec4_address(row.mask).at[min(first + (h + j) * GROUP, count - 1)];
    [[unroll]] for (uint j = 0; j < 4; ++j) held[h + j] += mask[j];
  }
  [[unroll]] for (uint j = 0; j < kHeld; ++j)
    if (first + j * GROUP >= count) held[j] = vec4(kMinusInfinity);
}

void store_four(SoftmaxBlock p, SoftmaxRow row, uint at, vec4 y) {
  if (row.fours) {
    vec4_address(row.y).at[at] = y;
    return;
  }
  for (uint j = 0; j < 4; ++j)
    if (4 * at + j < p.width) float_address(row.y).at[4 * at + j] = y[j];
}

vec4 exponentials(vec4 z, float base) {
  for (uint j = 0; j < 4; ++j) z[j] = exp_f32(z[j] - base);
  return z;
}

float largest(float a, vec4 z) { return max(max(a, max(z[0], z[1])), max(z[2], z[3])); }

// What becomes of the exponentials of a row, or for logarithms of its scores. All is masked if the sum is 0.
vec4 softmax_of(SoftmaxBlock p, vec4 made, float base, float sum) {
  if (p.logarithm != 0) return sum == 0 ? vec4(kMinusInfinity) : made - vec4(base) - vec4(log_f32(sum));
  return sum == 0 ? vec4(0.0f) : made * (1 / sum);
}
#endif
