// norm_gated: y[t][h] = activation(gate[t][h]) * x[t][h] / rms(x[t][h]) * gain
//   x, gate [tokens][heads][kWidth] float32
//   grid    (tokens, heads / kHeads)
//   group   GROUP threads; a subgroup makes a head at a time
//   shared  none
//   moves   x, gate and y once; 1.75 bytes a value for y in q8x16, 2 bytes for y as float16
// The argument block is NormGateBlock in kernels/abi/sequences.h.
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "kernels/abi/sequences.h"
#include "kernels/gpu/q8x16.h"
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/elementwise/activation.h"
#include "kernels/vulkan/halves.h"
#include "kernels/vulkan/step.h"

GRETA_ABI_BUFFER(vec4, vec4, 16)
layout(push_constant, scalar) uniform Push { NormGateBlock p; CHAIN_BEHIND; };

layout(constant_id = 2) const uint kWidth = 128;
const uint kHeads = 4;  // of a group: TILE in kernels/vulkan/CMakeLists.txt
const uint kFours = kWidth / 4, kLaneFours = (kFours + kLanes - 1) / kLanes;  // of a head; of a lane

vec4 four(float_address values, uint at) { return vec4_address(uint64_t(values)).at[at]; }

// The index in the head of the lane's i-th four. Lanes beyond the head load its last one.
uint four_of_lane(uint i) { return i * kLanes + gl_SubgroupInvocationID; }
uint loaded_four(uint i) { return min(four_of_lane(i), kFours - 1); }

void make_head(uint t, uint h, vec4 gain[kLaneFours]) {
  const uint first = (t * p.heads + h) * kFours;
  vec4 x[kLaneFours], gate[kLaneFours];
  float squares = 0;
  [[unroll]] for (uint i = 0; i < kLaneFours; ++i) {
    x[i] = four(p.x, first + loaded_four(i));
    gate[i] = four(p.gate, first + loaded_four(i));
  }
  [[unroll]] for (uint i = 0; i < kLaneFours; ++i)
    if (four_of_lane(i) < kFours) squares += dot(x[i], x[i]);
  const float factor = 1 / sqrt(subgroupAdd(squares) / float(kWidth) + p.epsilon);
  const uint width = p.heads * kWidth;
  const uint64_t row = uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(width);
  [[unroll]] for (uint i = 0; i < kLaneFours; ++i) {
    if (four_of_lane(i) >= kFours) break;
    const uint at = first + four_of_lane(i);
    vec4 y;
    for (uint j = 0; j < 4; ++j) y[j] = gated(p.activation, gate[i][j], x[i][j] * factor * gain[i][j]);
    vec4_address(uint64_t(p.y)).at[at] = y;
    store_halves(p.halves, at * 4, y);
    if (uint64_t(p.rounded) != 0) store_q8x16(row, width, h * kFours + four_of_lane(i), y, dot(y, y));
  }
}

void make_heads(vec4 gain[kLaneFours]) {
  const uint t = gl_WorkGroupID.x, first = gl_WorkGroupID.y * kHeads;
  if (t >= live_rows(step_of(p.step), kRowsTokens)) return;
  for (uint h = first + gl_SubgroupID; h < min(first + kHeads, p.heads); h += gl_NumSubgroups)
    make_head(t, h, gain);
}

void main() {
  vec4 gain[kLaneFours];
  [[unroll]] for (uint i = 0; i < kLaneFours; ++i) gain[i] = four(p.gain, loaded_four(i));
  chain_wait(chain);
  make_heads(gain);
  chain_end(chain);
}
