// Heads of queries or keys, normalised and rotated. A subgroup makes a head; its lanes have pairs of values.
// Before it includes this file the kernel defines the constant kHeadWidth, the values of a head.
#ifndef GRETA_VULKAN_HEADS_H
#define GRETA_VULKAN_HEADS_H
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "kernels/vulkan/lanes.h"
#include "kernels/gpu/quant.h"

const uint kPairs = (kHeadWidth / 2 + kLanes - 1) / kLanes;  // pairs that a lane has

struct Rotation {
  float_address table;  // cosine and sine of each pair that rotates, at the token's position
  uint width;           // values at the start of a head that rotate
  bool halves;          // pair i is values i and i + width / 2, else 2i and 2i + 1
};

// The two values of a pair. Values that do not rotate are paired with their neighbours.
uvec2 places_of(Rotation rotation, uint pair) {
  const uint rotated = rotation.width / 2;
  return rotation.halves && pair < rotated ? uvec2(pair, pair + rotated) : 2 * pair + uvec2(0, 1);
}

float norm_factor(float squares, uint width, float epsilon) {
  return 1 / sqrt(squares / float(width) + epsilon);
}

// Makes the head at x; y[i] is pair i * kLanes + lane. With a gain, or where it `norms` without one, the head
// is normalised, by `factor`, or by its own factor where that is negative.
void make_head(float_address x, float_address gain, bool norms, float factor, float epsilon,
               Rotation rotation, out vec2 y[kPairs]) {
  const bool has_gain = uint64_t(gain) != 0;
  norms = norms || has_gain;
  vec2 gains[kPairs], rotations[kPairs];
  const uint lane = gl_SubgroupInvocationID;
  float squares = 0;
  [[unroll]] for (uint i = 0; i < kPairs; ++i) {
    const uint pair = min(i * kLanes + lane, kHeadWidth / 2 - 1);
    const uvec2 at = places_of(rotation, pair);
    y[i] = vec2(x.at[at.x], x.at[at.y]);
    gains[i] = has_gain ? vec2(gain.at[at.x], gain.at[at.y]) : vec2(1);
    rotations[i] =
        pair < rotation.width / 2 ? vec2(rotation.table.at[2 * pair], rotation.table.at[2 * pair + 1])
            : vec2(1, 0);
    if (i * kLanes + lane < kHeadWidth / 2) squares += dot(y[i], y[i]);
  }
  if (norms && factor < 0) factor = norm_factor(subgroupAdd(squares), kHeadWidth, epsilon);
  [[unroll]] for (uint i = 0; i < kPairs; ++i) {
    const vec2 v = norms ? y[i] * factor * gains[i] : y[i];
    y[i] = vec2(v.x * rotations[i].x - v.y * rotations[i].y, v.x * rotations[i].y + v.y * rotations[i].x);
  }
}
#endif
