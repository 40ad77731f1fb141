// The 16 bytes that Q4_K and Q5_K begin with: f16 d, f16 dmin, then 8 scales and 8 minima of 6 bits.
#ifndef GRETA_VULKAN_SCALES_K4_H
#define GRETA_VULKAN_SCALES_K4_H

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

// In planes these 16 bytes are d and dmin, in byte i of two words the scale of group i and below it, in the upper two
// bits, the lowest of the minimum, and its other four bits in a word for all groups.
uvec4 plane_head(uvec4 head) {
  uvec4 words = uvec4(head.x, 0, 0, 0);
  [[unroll]] for (uint pair = 0; pair < 4; ++pair) {
    const uvec4 of = scales_of_unit(head, pair * 2);
    [[unroll]] for (uint i = 0; i < 2; ++i) {
      const uint group = pair * 2 + i, scale = of[i], least = of[2 + i];
      words[1 + group / 4] |= (scale | (least & 3) << 6) << group % 4 * 8;
      words[3] |= least >> 2 << group * 4;
    }
  }
  return words;
}

// Scale and minimum of group `i` of such a head.
uvec2 plane_scales(uvec4 head, uint i) {
  const uint both = (i < 4 ? head.y : head.z) >> i % 4 * 8;
  return uvec2(both & 63, both >> 6 & 3 | (head.w >> i * 4 & 15) << 2);
}
#endif
