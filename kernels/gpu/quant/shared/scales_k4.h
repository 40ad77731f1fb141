// The 16 bytes that Q4_K and Q5_K begin with: f16 d, f16 dmin, then 8 scales and 8 minima of 6 bits.
#ifndef GRETA_GPU_SCALES_K4_H
#define GRETA_GPU_SCALES_K4_H

// d * scale and dmin * min of group i.
vec2 scale_and_min(uvec4 head, uint i) {
  const int shift = int(i % 4 * 8);
  const uint a = head.y >> shift, b = head.z >> shift, c = head.w >> shift;
  const uint scale = i < 4 ? a & 63 : (c & 15) | ((a >> 2) & 48);
  const uint low = i < 4 ? b & 63 : ((c >> 4) & 15) | ((b >> 2) & 48);
  precise const vec2 result = unpackHalf2x16(head.x) * vec2(scale, low);
  return result;
}

// Scales and minima of groups 2 j and 2 j + 1 as {scale, scale, minimum, minimum}, j = unit % 8 / 2.
uvec4 scales_of_unit(uvec4 head, uint unit) {
  const uint shift = (unit & 2) * 8;
  const uint a = head.y >> shift, b = head.z >> shift, c = head.w >> shift;
  const bool late = (unit & 4) != 0;
  const uint scales = late ? (c & 0x0f0f) | (a >> 2 & 0x3030) : a & 0x3f3f;
  const uint minima = late ? (c >> 4 & 0x0f0f) | (b >> 2 & 0x3030) : b & 0x3f3f;
  return uvec4(scales & 255, scales >> 8, minima & 255, minima >> 8);
}
#endif
