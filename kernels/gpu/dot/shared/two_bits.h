// Units of the types that keep two bits of weight 128 half + 32 j + i in bits 2 j of byte 32 half + i, of the
// 64 bytes of a block: unit 4 half + 2 p + h is the 16 bytes from 32 half + 16 h on, j = 2 p and 2 p + 1.
#ifndef GRETA_GPU_TWO_BITS_H
#define GRETA_GPU_TWO_BITS_H

uint two_bits_at(uint unit) { return (unit & 4) * 8 + (unit & 1) * 16; }

#define DOT_GROUPS
uvec2 dot_groups(uint unit) {
  const uint group = unit / 8 * 16 + (unit & 6) * 2 + (unit & 1);
  return uvec2(group, group + 2);
}
#endif
