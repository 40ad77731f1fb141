// The numbers of the IQ4 types as bytes for int8 products: those of two weights are looked up at once.
#ifndef GRETA_GPU_IQ4_ROWS_H
#define GRETA_GPU_IQ4_ROWS_H

#ifdef GL_core_profile
shared uint16_t iq4_pairs[256];

void dot_begin() {
  for (uint i = gl_LocalInvocationIndex; i < 256; i += gl_WorkGroupSize.x)
    iq4_pairs[i] = uint16_t(int(kIq4Values[i & 15]) & 255 | int(kIq4Values[i >> 4]) << 8);
  barrier();
}

// Of the low half of each byte.
uvec4 iq4_bytes(uvec4 q) {
  const uvec4 halves = q & 0x0f0f0f0f, pairs = halves | halves >> 4;
  uvec4 bytes;
  [[unroll]] for (int i = 0; i < 4; ++i)
    bytes[i] = uint(iq4_pairs[byte_of(pairs[i], 0)]) | uint(iq4_pairs[byte_of(pairs[i], 2)]) << 16;
  return bytes;
}
#else
void dot_begin() {}

uvec4 iq4_bytes(uvec4 q) {
  const uint table[4] = {0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535};  // kIq4Values
  uvec4 bytes;
  [[unroll]] for (int i = 0; i < 4; ++i) bytes[i] = look_up_bytes(table, q[i]);
  return bytes;
}
#endif
#endif
