// Values of the types of cast (kernels/abi/cast.h), four at a time.
#ifndef GRETA_GPU_CAST_H
#define GRETA_GPU_CAST_H
#include "kernels/abi/cast.h"
#include "kernels/gpu/math.h"

GRETA_ABI_BUFFER(uint16, uint16_t, 2)
GRETA_ABI_BUFFER(uvec2, uvec2, 8)
GRETA_ABI_BUFFER(vec4, vec4, 16)

// Half a word, whose other bits are 0, from and to float32.
float load_half_word(uint type, uint bits) {
  return type == kCastF16 ? unpackHalf2x16(bits).x : uintBitsToFloat(bits << 16);
}
uint store_half_word(uint type, float value) {
  if (type == kCastF16) return f32_to_f16(value);
  const uint bits = floatBitsToUint(value);
  return is_nan(value) ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}

// Values 4 * at .. 4 * at + 3 of a row.
vec4 load_four(uint64_t row, uint type, uint at) {
  if (type == kCastF32) return vec4_address(row).at[at];
  const uvec2 words = uvec2_address(row).at[at];
  return vec4(load_half_word(type, words.x & 0xffffu), load_half_word(type, words.x >> 16),
              load_half_word(type, words.y & 0xffffu), load_half_word(type, words.y >> 16));
}
void store_four(uint64_t row, uint type, uint at, vec4 x) {
  if (type == kCastF32) {
    vec4_address(row).at[at] = x;
    return;
  }
  uvec2_address(row).at[at] = uvec2(store_half_word(type, x.x) | store_half_word(type, x.y) << 16,
                                    store_half_word(type, x.z) | store_half_word(type, x.w) << 16);
}

float load_one(uint64_t row, uint type, uint i) {
  return type == kCastF32 ? float_address(row).at[i] : load_half_word(type, uint(uint16_address(row).at[i]));
}
void store_one(uint64_t row, uint type, uint i, float x) {
  if (type == kCastF32) float_address(row).at[i] = x;
  else uint16_address(row).at[i] = uint16_t(store_half_word(type, x));
}

// Casts values first .. first + 3 of row `from` of x to row `to` of y, those that there are.
void cast_four(CastBlock p, uint from, uint to, uint first) {
  if (first >= p.width) return;
  const uint64_t x = uint64_t(p.x) + uint64_t(from) * p.x_stride * (p.x_type == kCastF32 ? 4 : 2);
  const uint64_t y = uint64_t(p.y) + uint64_t(to) * p.y_stride * (p.y_type == kCastF32 ? 4 : 2);
  if ((p.width | p.x_stride | p.y_stride) % 4 == 0) {
    store_four(y, p.y_type, first / 4, load_four(x, p.x_type, first / 4));
    return;
  }
  for (uint i = first; i < min(first + 4, p.width); ++i) store_one(y, p.y_type, i, load_one(x, p.x_type, i));
}
#endif
