// Heads of queries or keys, normed and rotated: by a subgroup each, whose lanes have pairs of values. The kernel names
// their width, kHeadWidth.
#ifndef GRETA_VULKAN_HEADS_H
#define GRETA_VULKAN_HEADS_H
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "kernels/vulkan/lanes.h"
#include "kernels/vulkan/quant.h"

const uint kPairs = (kHeadWidth / 2 + kLanes - 1) / kLanes;  // of a lane

struct Turn {
  float_address table;  // of the position: cosine and sine of each pair that rotates
  uint width;           // values that rotate: the first of a head
  bool halves;
};

// A pair of a head is what rotates together, or neighbours behind that.
uvec2 places_of(Turn turn, uint pair) {
  const uint turned = turn.width / 2;
  return turn.halves && pair < turned ? uvec2(pair, pair + turned) : 2 * pair + uvec2(0, 1);
}

float norm_factor(float squares, uint width, float epsilon) { return 1 / sqrt(squares / float(width) + epsilon); }

// The head at x: pair i * kLanes + lane is y[i]. With a gain it is normed, by `factor`, or by its own where that is negative.
void make_head(float_address x, float_address gain, float factor, float epsilon, Turn turn, out vec2 y[kPairs]) {
  const bool norms = uint64_t(gain) != 0;
  vec2 gains[kPairs], turns[kPairs];
  const uint lane = gl_SubgroupInvocationID;
  float squares = 0;
  [[unroll]] for (uint i = 0; i < kPairs; ++i) {
    const uint pair = min(i * kLanes + lane, kHeadWidth / 2 - 1);
    const uvec2 at = places_of(turn, pair);
    y[i] = vec2(x.at[at.x], x.at[at.y]);
    gains[i] = norms ? vec2(gain.at[at.x], gain.at[at.y]) : vec2(1);
    turns[i] = pair < turn.width / 2 ? vec2(turn.table.at[2 * pair], turn.table.at[2 * pair + 1]) : vec2(1, 0);
    if (i * kLanes + lane < kHeadWidth / 2) squares += dot(y[i], y[i]);
  }
  if (norms && factor < 0) factor = norm_factor(subgroupAdd(squares), kHeadWidth, epsilon);
  [[unroll]] for (uint i = 0; i < kPairs; ++i) {
    const vec2 v = norms ? y[i] * factor * gains[i] : y[i];
    y[i] = vec2(v.x * turns[i].x - v.y * turns[i].y, v.x * turns[i].y + v.y * turns[i].x);
  }
}
#endif
