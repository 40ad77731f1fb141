// The grids of the IQ types as bytes for int8 products, in shared memory; the signs of their weights.
#ifndef GRETA_GPU_IQ_ROWS_H
#define GRETA_GPU_IQ_ROWS_H

// Defines dot_begin(), which fills points[] with what `bytes_of` makes of the type's kPoints.
#define DOT_POINTS(entry, bytes_of)                                                       \
  shared entry points[length_of(kPoints) * 8];                                            \
  void dot_begin() {                                                                      \
    for (uint i = gl_LocalInvocationIndex; i < length_of(kPoints); i += gl_WorkGroupSize.x) {\
      const uvec4 eight = kPoints[i];                                                     \
      [[unroll]] for (uint j = 0; j < 8; ++j)                                             \
        points[i * 8 + j] = bytes_of(point_of_constant(eight, j));                        \
    }                                                                                     \
    barrier();                                                                            \
  }

// The codes of four weights, `bits` bits each, as bytes.
uint code_bytes(uint codes, int bits) {
  uint bytes = 0;
  [[unroll]] for (int i = 0; i < 4; ++i) bytes |= bitfieldExtract(codes, i * bits, bits) << i * 8;
  return bytes;
}

// The levels 8, 25, 43 of an IQ2 point.
uint iq2_levels(uint codes) { return 0x08080808 + codes * 17 + (codes >> 1 & 0x01010101); }
uvec2 iq2_bytes(uint point) {
  return uvec2(iq2_levels(code_bytes(point, 2)), iq2_levels(code_bytes(point >> 8, 2)));
}

// The 8 codes of an IQ1 point: byte i holds code i low and code i + 4 high.
uint iq1_nibbles(uint point) { return code_bytes(point, 2) | code_bytes(point >> 8, 2) << 4; }

// 16 values, none of them 0, negative where the bit is set.
uvec4 with_signs(uvec4 values, uint bits) {
  const uvec4 negative = spread_bits(bits);
  return (values ^ negative * 255) + negative;
}

// The signs of 16 weights from twice 7 bits.
uint even_signs_of_16(uint bits) { return even_signs(bits & 127) | even_signs(bits >> 7 & 127) << 8; }
#endif
