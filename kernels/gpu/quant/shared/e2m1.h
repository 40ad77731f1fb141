// A 4-bit float (2 bits of exponent, 1 of mantissa), doubled: kernels/tables/e2m1_values.inc in arithmetic.
#ifndef GRETA_GPU_E2M1_H
#define GRETA_GPU_E2M1_H

// Of the low four bits of q.
float e2m1(uint q) {
  const int magnitude = int((0xc8643210u >> ((q & 7) * 4)) & 15);
  return float((q & 8) != 0 ? -magnitude : magnitude);
}

// Of the low half of each byte, plus 12: never negative, so that four are made at once.
#ifdef GL_core_profile
uvec4 twice_plus_12(uvec4 q) {
  const uvec4 from_4 = (q >> 2 & 0x01010101) * 3;  // 5, 6, 7 stand for 6, 8, 12
  const uvec4 low = q & from_4;
  const uvec4 size = (q & 0x07070707) + low + ((low & low >> 1) & 0x01010101) * 2;
  const uvec4 negative = (q >> 3 & 0x01010101) * 255;
  return 0x0c0c0c0c + (size & ~negative) - (size & negative);
}
#else
uvec4 twice_plus_12(uvec4 q) {
  const uint table[4] = {0x0f0e0d0c, 0x18141210, 0x090a0b0c, 0x00040608};
  uvec4 bytes;
  [[unroll]] for (int i = 0; i < 4; ++i) bytes[i] = look_up_bytes(table, q[i]);
  return bytes;
}
#endif
#endif
