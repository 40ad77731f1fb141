// rope_heads: heads of queries or keys, normalised, rotated and stored.
//   y[t][h] = rotate(x[t][h] / rms(x[t][h]) * gain, position of t), or into the page pool
//     where x [tokens][heads][head_width]
//   grid    (tokens, heads / p.tile)
//   group   GROUP threads. A subgroup makes a head, up to 4 subgroups at a time. Where the norm is over all
//           heads of a token, all threads add up their squares first
//   shared  kHeadsAtOnce * head_width floats, for a cache of q8_0; GROUP * 2 bytes for sums
//   moves   x and y once; x of all heads of the token once more for each group where the norm is over all
//           heads
// The argument block is RopeHeadsBlock in kernels/abi/ops.h.
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/attention/cache.h"
#include "kernels/vulkan/reduce.h"

layout(push_constant, scalar) uniform Push { RopeHeadsBlock p; CHAIN_BEHIND; };

layout(constant_id = 2) const uint kHeadWidth = 128;
const uint kHeadsAtOnce = GROUP / kLanes < 4 ? GROUP / kLanes : 4;

#include "kernels/vulkan/norm/heads.h"  // needs kHeadWidth

shared float staged[kHeadsAtOnce * kHeadWidth];  // heads on their way into blocks of q8_0

StepState_address step;

// The factor of a norm over all heads of token t.
float factor_of_token(uint t) {
  float sum = 0;
  for (uint i = gl_LocalInvocationIndex; i < p.norm_width; i += GROUP) {
    const float x = p.x.at[t * p.norm_width + i];
    sum += x * x;
  }
  return norm_factor(group_sum(sum), p.norm_width, p.epsilon);
}

Rotation rotation_of(uint t) {
  const uint turns = step.state.row[t].position * p.rope_width;
  return Rotation(float_address(uint64_t(p.table) + uint64_t(turns) * 4), p.rope_width, p.rope_halves != 0);
}

// Makes head h of token t; `factor` is the norm's where it is over all heads, else negative.
void make(uint t, uint h, float factor, Rotation rotation, out vec2 y[kPairs]) {
  const bool all_heads = p.norm_width != kHeadWidth;
  const uint64_t x = uint64_t(p.x) + (t * p.heads + h) * kHeadWidth * 4;
  const uint64_t gain = uint64_t(p.gain) + (all_heads ? h * kHeadWidth * 4 : 0);
  make_head(float_address(x), float_address(uint64_t(p.gain) != 0 ? gain : 0), false, factor, p.epsilon,
            rotation, y);
}

void store(uint64_t to, uint type, Rotation rotation, vec2 y[kPairs]) {
  [[unroll]] for (uint i = 0; i < kPairs; ++i) {
    const uint pair = i * kLanes + gl_SubgroupInvocationID;
    if (pair >= kHeadWidth / 2) break;
    const uvec2 at = places_of(rotation, pair);
    [[unroll]] for (uint j = 0; j < 2; ++j)
      if (type == kCacheF32) float_address(to).at[at[j]] = y[i][j];
      else if (type == kCacheF16) uint16_address(to).at[at[j]] = uint16_t(f32_to_f16(y[i][j]));
      else staged[gl_SubgroupID * kHeadWidth + at[j]] = y[i][j];
  }
}

void store_staged(uint64_t to) {
  for (uint block = gl_SubgroupInvocationID; block < kHeadWidth / 32; block += kLanes) {
    float values[32];
    [[unroll]] for (uint i = 0; i < 32; ++i) values[i] = staged[gl_SubgroupID * kHeadWidth + block * 32 + i];
    store_q8_0(to + block * 34, values);
  }
}

void make_heads() {
  const uint t = gl_WorkGroupID.x, first = gl_WorkGroupID.y * p.tile;
  step = step_of(p.step);
  if (t >= live_rows(step, kRowsTokens)) return;
  const uint type = p.page_bytes != 0 ? p.cache_type : kCacheF32;
  Rotation rotation = rotation_of(t);
  float factor = -1;
  if (uint64_t(p.gain) != 0 && p.norm_width != kHeadWidth) factor = factor_of_token(t);
  // All subgroups go through the loop equally often, since it has barriers.
  for (uint done = 0; done < p.tile; done += kHeadsAtOnce) {
    const uint h = first + done + gl_SubgroupID;
    const bool has_head = gl_SubgroupID < kHeadsAtOnce && done + gl_SubgroupID < p.tile && h < p.heads;
    uint64_t to = 0;
    if (has_head) {
      to = p.page_bytes == 0 ? uint64_t(p.y) + uint64_t(t * p.heads + h) * kHeadWidth * 4
                             : head_in_page(step, step.state.row[t], uint64_t(p.y), p.page_bytes, h,
                                            cache_head_bytes(type, kHeadWidth));
      vec2 y[kPairs];
      make(t, h, factor, rotation, y);
      store(to, type, rotation, y);
    }
    if (type != kCacheQ8) continue;
    barrier();
    if (has_head) store_staged(to);
    barrier();
  }
}

void main() {
  chain_wait(chain);
  make_heads();
  chain_end(chain);
}
