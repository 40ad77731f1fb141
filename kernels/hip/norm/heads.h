// Heads of queries or keys, normalised and rotated. A wave makes a head; its lanes have pairs of values.
#pragma once
#include "kernels/abi/ops.h"
#include "kernels/hip/glsl.h"

struct Rotation {
  const GLOBAL float* turns;  // cosine and sine of each pair that rotates, at the token's position
  uint width;                 // values at the start of a head that rotate
  bool halves;                // pair i is values i and i + width / 2, else 2i and 2i + 1
};

// The two values of a pair. Values that do not rotate are paired with their neighbours.
DEVICE uvec2 places_of(const Rotation& rotation, uint pair) {
  const uint rotated = rotation.width / 2;
  return rotation.halves && pair < rotated ? uvec2{pair, pair + rotated} : uvec2{2 * pair, 2 * pair + 1};
}

DEVICE float norm_factor(float squares, uint width, float epsilon) {
  return 1 / __builtin_sqrtf(squares / float(width) + epsilon);
}

// Makes the head of `width` values at x, and calls store(i, value) for each of this lane's values. With a
// gain the head is normalised, by `factor`, or by its own factor where that is negative. All lanes of the
// wave call it.
template <class Store>
DEVICE void make_head(const GLOBAL float* x, const GLOBAL float* gain, uint width, float factor,
                      float epsilon, const Rotation& rotation, Store store) {
  if (gain && factor < 0) {
    float squares = 0;
    for (uint i = lane(); i < width; i += kWave) squares += x[i] * x[i];
    factor = norm_factor(wave_sum(squares), width, epsilon);
  }
  for (uint pair = lane(); pair < width / 2; pair += kWave) {
    const uvec2 at = places_of(rotation, pair);
    const bool turns = pair < rotation.width / 2;
    const vec2 turn = turns ? load<vec2>(rotation.turns + 2 * pair) : vec2{1, 0};
    const float scale_a = gain ? factor * gain[at.x] : 1, scale_b = gain ? factor * gain[at.y] : 1;
    const float a = x[at.x] * scale_a, b = x[at.y] * scale_b;
    store(at.x, a * turn.x - b * turn.y);
    store(at.y, a * turn.y + b * turn.x);
  }
}
