// BF16: a unit is 16 bytes.
#define DOT_STAGE  // decode_stages of kernels/hip has bodies for it
#include "kernels/gpu/unit_float.h"

struct Weights {
  uvec4 q;
};

Weights dot_load(uint64_t row, uint unit) { return Weights(load_16_of_16(row + unit * 16)); }

float dot_unit(Weights w, Values x) {
  const vec4 even = uintBitsToFloat(w.q << 16), odd = uintBitsToFloat(w.q & 0xffff0000u);
  return dot(even, vec4(x.x0.xz, x.x1.xz)) + dot(odd, vec4(x.x0.yw, x.x1.yw));
}
