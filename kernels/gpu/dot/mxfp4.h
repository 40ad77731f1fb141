// MXFP4: a unit is a block; its first 16 weights are the low halves of the bytes.
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 q;
  uint exponent;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  return Weights(load_16(part(row, kDepth, unit, 0)), load_u8(part(row, kDepth, unit, 1)));
}

// 2^(e - 128), as quant/mxfp4.h has it.
float half_power(uint e) { return uintBitsToFloat(e < 2 ? 0x200000u << e : e - 1 << 23); }

float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(twice_plus_12(w.q), x.q0), high = dot16(twice_plus_12(w.q >> 4), x.q1);
  return half_power(w.exponent) *
         (float(low) * x.scale0.x + float(high) * x.scale1.x - 12 * (x.scale0.y + x.scale1.y));
}
