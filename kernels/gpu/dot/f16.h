// F16: a unit is 16 bytes.
#define DOT_STAGE  // decode_stages of kernels/hip has bodies for it
#include "kernels/gpu/unit_float.h"

struct Weights {
  uvec4 q;
};

Weights dot_load(uint64_t row, uint unit) { return Weights(load_16_of_16(row + unit * 16)); }

float dot_unit(Weights w, Values x) {
  return dot(vec4(unpackHalf2x16(w.q.x), unpackHalf2x16(w.q.y)), x.x0) +
         dot(vec4(unpackHalf2x16(w.q.z), unpackHalf2x16(w.q.w)), x.x1);
}
