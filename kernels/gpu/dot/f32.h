// F32: a unit is 32 bytes.
#define DOT_STAGE  // decode_stages of kernels/hip has bodies for it
#include "kernels/gpu/unit_float.h"
#define DOT_LARGE

struct Weights {
  vec4 w0, w1;
};

Weights dot_load(uint64_t row, uint unit) {
  const uint64_t at = row + unit * 32;
  return Weights(uintBitsToFloat(load_16_of_16(at)), uintBitsToFloat(load_16_of_16(at + 16)));
}

float dot_unit(Weights w, Values x) { return dot(w.w0, x.x0) + dot(w.w1, x.x1); }
