// rope_heads: heads of queries or keys, normed, rotated and stored (RopeHeadsBlock, kernels/abi/ops.h).
//   grid   (tokens; p.tile heads to a group)
//   group  a subgroup makes a head, kAtOnce of them at a time; a norm over all heads of a token is all threads'
#extension GL_EXT_control_flow_attributes : require
#include "kernels/vulkan/cache.h"
#include "kernels/vulkan/reduce.h"

layout(push_constant, scalar) uniform Push { RopeHeadsBlock p; };

layout(constant_id = 2) const uint kHeadWidth = 128;
const uint kPairs = (kHeadWidth / 2 + kLanes - 1) / kLanes;  // of a lane
const uint kAtOnce = GROUP / kLanes < 4 ? GROUP / kLanes : 4;

shared float staged[kAtOnce * kHeadWidth];  // heads on their way into blocks of q8_0

StepState_address step;

float factor_of(float squares) { return 1 / sqrt(squares / float(p.norm_width) + p.epsilon); }

// The factor of a norm over all heads of token t.
float factor_of_token(uint t) {
  float sum = 0;
  for (uint i = gl_LocalInvocationIndex; i < p.norm_width; i += GROUP) {
    const float x = p.x.at[t * p.norm_width + i];
    sum += x * x;
  }
  return factor_of(group_sum(sum));
}

// A pair of a head is what rotates together, or neighbours behind that.
uvec2 places_of(uint pair) {
  const uint turned = p.rope_width / 2;
  return p.rope_halves != 0 && pair < turned ? uvec2(pair, pair + turned) : 2 * pair + uvec2(0, 1);
}

// Head h of token t: pair i * kLanes + lane is y[i]. `factor` is the norm's if it is over all heads.
void make(uint t, uint h, float factor, out vec2 y[kPairs]) {
  const bool norms = uint64_t(p.gain) != 0, all_heads = p.norm_width != kHeadWidth;
  const uint head = (t * p.heads + h) * kHeadWidth, turns = step.state.row[t].position * p.rope_width;
  vec2 gain[kPairs], turn[kPairs];
  const uint lane = gl_SubgroupInvocationID;
  float squares = 0;
  [[unroll]] for (uint i = 0; i < kPairs; ++i) {
    const uint pair = min(i * kLanes + lane, kHeadWidth / 2 - 1);
    const uvec2 at = places_of(pair), gain_at = all_heads ? h * kHeadWidth + at : at;
    y[i] = vec2(p.x.at[head + at.x], p.x.at[head + at.y]);
    gain[i] = norms ? vec2(p.gain.at[gain_at.x], p.gain.at[gain_at.y]) : vec2(1);
    turn[i] = pair < p.rope_width / 2 ? vec2(p.table.at[turns + 2 * pair], p.table.at[turns + 2 * pair + 1]) : vec2(1, 0);
    if (i * kLanes + lane < kHeadWidth / 2) squares += dot(y[i], y[i]);
  }
  if (norms && !all_heads) factor = factor_of(subgroupAdd(squares));
  [[unroll]] for (uint i = 0; i < kPairs; ++i) {
    const vec2 x = norms ? y[i] * factor * gain[i] : y[i];
    y[i] = vec2(x.x * turn[i].x - x.y * turn[i].y, x.x * turn[i].y + x.y * turn[i].x);
  }
}

void store(uint64_t to, uint type, vec2 y[kPairs]) {
  [[unroll]] for (uint i = 0; i < kPairs; ++i) {
    const uint pair = i * kLanes + gl_SubgroupInvocationID;
    if (pair >= kHeadWidth / 2) break;
    const uvec2 at = places_of(pair);
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

void main() {
  const uint t = gl_WorkGroupID.x, first = gl_WorkGroupID.y * p.tile;
  step = step_of(p.step);
  if (t >= live_rows(step, kRowsTokens)) return;
  const uint type = p.page_bytes != 0 ? p.cache_type : kCacheF32;
  float factor = 1;
  if (uint64_t(p.gain) != 0 && p.norm_width != kHeadWidth) factor = factor_of_token(t);
  // All subgroups go through the loop equally often: it has barriers.
  for (uint some = 0; some < p.tile; some += kAtOnce) {
    const uint h = first + some + gl_SubgroupID;
    const bool has_head = gl_SubgroupID < kAtOnce && some + gl_SubgroupID < p.tile && h < p.heads;
    uint64_t to = 0;
    if (has_head) {
      to = p.page_bytes == 0 ? uint64_t(p.y) + uint64_t(t * p.heads + h) * kHeadWidth * 4
                             : head_in_page(step, step.state.row[t], uint64_t(p.y), p.page_bytes, h, cache_head_bytes(type, kHeadWidth));
      vec2 y[kPairs];
      make(t, h, factor, y);
      store(to, type, y);
    }
    if (type != kCacheQ8) continue;
    barrier();
    if (has_head) store_staged(to);
    barrier();
  }
}
