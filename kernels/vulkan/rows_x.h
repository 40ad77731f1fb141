// x of a decode kernel: one row of float32, times the gain of a norm, as int8 in shared memory.
#ifndef GRETA_VULKAN_ROWS_X_H
#define GRETA_VULKAN_ROWS_X_H
#include "kernels/vulkan/rows.h"

shared uvec4 s_q[kSlots];
shared vec2 s_scale[kSlots];
shared float s_squares[GROUP / 4];

const uint kTogether = 4;  // loads of a thread that are under way together
const uint kTaken = kLanes >= 8 ? 4 : 8;  // values that a thread rounds at once: 32 share a scale

float largest(float value, uint lanes) {
  for (uint step = 1; step < lanes; step *= 2) value = max(value, subgroupShuffleXor(value, step));
  return value;
}
int total(int value, uint lanes) {
  for (uint step = 1; step < lanes; step *= 2) value += subgroupShuffleXor(value, step);
  return value;
}

// Rounds values at .. at + kTaken - 1 to the q8 form (kernels/abi/q8.h).
void stage_values(uint at, vec4 v[2]) {
  float most = 0;
  [[unroll]] for (uint i = 0; i < kTaken / 4; ++i) {
    const vec4 size = abs(v[i]);
    most = max(most, max(max(size.x, size.y), max(size.z, size.w)));
  }
  // A unit in the last place of the scale is nothing here, and an exact division long.
  const float scale = largest(most, 32 / kTaken) / 127, inverse = scale > 0 ? 1 / scale : 0;
  int sum = 0;
  [[unroll]] for (uint i = 0; i < kTaken / 4; ++i) {
    const ivec4 q = ivec4(roundEven(v[i] * inverse));
    sum += q.x + q.y + q.z + q.w;
    const uint group = at / 16, word = at % 16 / 4 + i;
    s_q[dot_slot(group)][word] = uint(q.x & 255) | uint(q.y & 255) << 8 | uint(q.z & 255) << 16 | uint(q.w) << 24;
  }
  sum = total(sum, 16 / kTaken);
  if (at % 16 == 0) s_scale[dot_slot(at / 16)] = vec2(scale, scale * float(sum));
}

// Stages the row of x at address `x`; with a gain, also says by what the products are to be multiplied then.
float stage_x(uint64_t x, uint64_t gain, float epsilon) {
  const uint thread = gl_SubgroupID * kLanes + gl_SubgroupInvocationID;
  float squares = 0;
  const uint stride = gl_WorkGroupSize.x * kTaken;
  for (uint first = thread * kTaken; first < kSlots * 16; first += kTogether * stride) {
    vec4 v[kTogether][2], g[kTogether][2];
    [[unroll]] for (uint j = 0; j < kTogether; ++j) {
      const uint at = first + j * stride;
      [[unroll]] for (uint i = 0; i < 2; ++i) {
        v[j][i] = vec4(0), g[j][i] = vec4(1);
        if (i >= kTaken / 4 || at >= kDepth) continue;
        v[j][i] = vec4_address(x + at * 4).at[i];
        if (gain != 0) g[j][i] = vec4_address(gain + at * 4).at[i];
      }
    }
    [[unroll]] for (uint j = 0; j < kTogether; ++j) {
      if (first + j * stride >= kSlots * 16) break;
      [[unroll]] for (uint i = 0; i < 2; ++i) {
        squares += dot(v[j][i], v[j][i]);
        v[j][i] *= g[j][i];
      }
      stage_values(first + j * stride, v[j]);
    }
  }
  if (gain != 0) {
    squares = subgroupAdd(squares);
    if (gl_SubgroupInvocationID == 0) s_squares[gl_SubgroupID] = squares;
  }
  barrier();
  if (gain == 0) return 1;
  float sum = 0;
  for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += kLanes) sum += s_squares[i];
  return inversesqrt(subgroupAdd(sum) / float(kDepth) + epsilon);
}

Values values_of(uint unit) {
  const uint slot = unit / 8 * 16 + unit % 8;
  return Values(s_q[slot], s_q[slot + 8], s_scale[slot], s_scale[slot + 8]);
}

#endif
