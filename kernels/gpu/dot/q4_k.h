// The int8 product of Q4_K in planes. A block has 256 weights in 8 groups of 32, and a unit is a group:
//   weight = d * scale * q - dmin * minimum    d and dmin of the block, scale and minimum of the group
// quant/q4_k_planes.h and quant/shared/k4_planes.h define what is read here:
//   unit_low(row, unit)             the 16 bytes of a unit: q of weights 0 .. 15 in their low halves, q of
//                                   weights 16 .. 31 in their high halves
//   block_head(row, depth, block)   the 16 bytes of a block with d and dmin (f16), scales and minima
//   plane_scales(head, group)       the scale and the minimum of a group, 6 bits each
#define DOT_STAGE  // decode_stages of kernels/hip has bodies for it
#include "kernels/gpu/unit_int8.h"

struct Weights {
  uvec4 q, head;
};

void dot_begin() {}

Weights dot_load(uint64_t row, uint unit) {
  return Weights(unit_low(row, unit), block_head(row, kDepth, unit / 8));
}

// The high halves stay where they are: as signed bytes they are 16 (q - 8).
float dot_unit(Weights w, uint unit, Values x) {
  const int low = dot16(w.q & 0x0f0f0f0f, x.q0), high = dot16((w.q & 0xf0f0f0f0) ^ 0x80808080, x.q1);
  const float sum = float(low) * x.scale0.x + float(high) * (x.scale1.x / 16) + 8 * x.scale1.y;
  const uvec2 scales = plane_scales(w.head, unit % 8);
  const vec2 d = unpackHalf2x16(w.head.x);
  return d.x * float(scales.x) * sum - d.y * float(scales.y) * (x.scale0.y + x.scale1.y);
}
