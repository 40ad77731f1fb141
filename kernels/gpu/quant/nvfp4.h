// NVFP4: 64 4-bit floats in 4 groups of 16, w = scale * value[q]; the table has doubled values, so the
// scales are halved.
//   8-bit float scale[4] (no sign, 4 bits of exponent, 3 of mantissa), 4-bit q[64]: 8 bytes for each group,
//   byte i with q[i] low and q[i + 8] high
#include "kernels/gpu/quant.h"
#include "kernels/gpu/quant/shared/e2m1.h"

// Half of a scale; 0x7f, NaN in the format, stands for 0.
#ifdef GL_core_profile
float half_scale(uint bits) {
  const uint exponent = (bits >> 3) & 15, mantissa = bits & 7;
  if (bits == 0x7f) return 0;
  if (exponent == 0) return float(mantissa) * (1.0f / 1024);
  return uintBitsToFloat((exponent + 127 - 8) << 23 | mantissa << 20);
}
#else  // a float32 with these bits is 2^-119 of it, be it denormal or not
float half_scale(uint bits) { return bits == 0x7f ? 0 : uintBitsToFloat(bits << 20) * 0x1p119f; }
#endif

void quant_begin() {}

void quant_decode(uint64_t row, uint depth, uint unit, out precise float w[kUnit]) {
  const uint64_t block = row + unit / 2 * QUANT_BYTES;
  const uint scales = load_u16(block + unit % 2 * 2);  // of two groups
  const float d0 = half_scale(scales & 255), d1 = half_scale(scales >> 8);
  const uvec4 q = load_16(block + 4 + unit % 2 * 16);
  [[unroll]] for (int i = 0; i < 8; ++i) {
    w[i] = d0 * e2m1(byte_of(q, i));
    w[i + 8] = d0 * e2m1(byte_of(q, i) >> 4);
    w[i + 16] = d1 * e2m1(byte_of(q, i + 8));
    w[i + 24] = d1 * e2m1(byte_of(q, i + 8) >> 4);
  }
}
