// Queries, keys and values of attention_heads and attention_lone_heads, for split.h: a group normalises and
// rotates the queries of its KV head. The group that takes the newest position makes its key and value too,
// and stores them in their page. queries_given.h has the same names.
//
// Before it includes this file the kernel says by kLone whether each row is the only one of its sequence. The
// build defines GROUP.
#ifndef GRETA_VULKAN_ATTENTION_QUERIES_MADE_H
#define GRETA_VULKAN_ATTENTION_QUERIES_MADE_H
#include "kernels/abi/sequences.h"
#include "kernels/vulkan/attention/cache.h"
#include "kernels/vulkan/attention/split_basics.h"
#include "kernels/vulkan/chain.h"

layout(push_constant, scalar) uniform Push { AttentionHeadsBlock p; };
layout(constant_id = 2) const uint kHeads = 1;
layout(constant_id = 3) const uint kKvHeads = 1;
layout(constant_id = 4) const uint kHeadWidth = 64;
layout(constant_id = 5) const uint kKeyType = 1;
layout(constant_id = 6) const uint kValueType = 1;
layout(constant_id = 7) const uint kSoftcap = 0;  // its bits
layout(constant_id = 8) const uint kEpsilon = 0;  // its bits
layout(constant_id = 9) const uint kRopeWidth = 0;
layout(constant_id = 10) const uint kRopeHalves = 0;
layout(constant_id = 11) const uint kNorms = 0;

layout(constant_id = 12) const uint kHalves = 0;  // y in float16 for the next matmul, not in q8x16
const bool kNormsValue = (kNorms & kNormsValues) != 0;
const uint kTokenStride = kLone ? 1 : 0;          // else there is one token

const uint kHeadsPerKv = kHeads / kKvHeads;  // query heads that share a KV head
const uint kKeyWidth = kHeadWidth, kValueWidth = kHeadWidth;

#include "kernels/vulkan/norm/heads.h"

shared vec4 made[(kHeadsPerKv + 2) * kHeadWidth / 4];  // heads: queries, key, value
shared float subgroup_squares[GROUP / 4];              // one for each subgroup, of at least 4 lanes

float sink_of(uint head) { return kNone; }
uint value_stride() { return kHeadWidth; }
vec4 query_at(uint t, uint head, uint i) { return made[head % kHeadsPerKv * (kHeadWidth / 4) + i]; }

// Of lone rows: whether y is wanted in float16, and where.
bool stores_halves() { return kHalves != 0; }
byte_address halves_at() { return p.rounded; }

// The factors of the norms over all heads of queries and over all heads of keys; negative where each head has
// its own. Half of the threads add up the squares of each, in the order of rope_heads, which has as many
// threads.
vec2 factors_of_token(uint t) {
  if (kNorms != kNormsAllHeads) return vec2(-1);
  const uint each = GROUP / 2, width = kHeadWidth * (gl_LocalInvocationIndex < each ? kHeads : kKvHeads);
  float_address x = float_address((gl_LocalInvocationIndex < each ? uint64_t(p.q) : uint64_t(p.k)) +
                                  kTokenStride * t * width * 4);
  float sum = 0;
  for (uint i = gl_LocalInvocationIndex % each; i < width; i += each) sum += x.at[i] * x.at[i];
  sum = lanes_sum(sum);
  if (gl_SubgroupInvocationID == 0) subgroup_squares[gl_SubgroupID] = sum;
  barrier();
  vec2 squares = vec2(0);
  for (uint i = 0; i < kSubgroups / 2; ++i)
    squares += vec2(subgroup_squares[i], subgroup_squares[kSubgroups / 2 + i]);
  return vec2(norm_factor(squares.x, kHeads * kHeadWidth, uintBitsToFloat(kEpsilon)),
              norm_factor(squares.y, kKvHeads * kHeadWidth, uintBitsToFloat(kEpsilon)));
}

// Makes head `i` of `made`.
void make_head_of_group(uint i, uint t, uint position, uint kv_head, vec2 factors) {
  const bool query = i < kHeadsPerKv, value = i > kHeadsPerKv;
  const uint head = query ? kv_head * kHeadsPerKv + i : kv_head, bytes = head * kHeadWidth * 4;
  const uint before = kTokenStride * t * (query ? kHeads : kKvHeads) * kHeadWidth * 4;
  const uint64_t x = uint64_t(query ? p.q : value ? p.v : p.k) + before + bytes;
  uint64_t gain = value ? 0 : uint64_t(query ? p.q_gain : p.k_gain);
  if (gain != 0 && kNorms == kNormsAllHeads) gain += bytes;
  Rotation rotation = Rotation(float_address(uint64_t(p.table) + uint64_t(position) * kRopeWidth * 4),
                               value ? 0 : kRopeWidth, kRopeHalves != 0);
  vec2 y[kPairs];
  make_head(float_address(x), float_address(gain), kNormsValue && value, query ? factors.x : factors.y,
            uintBitsToFloat(kEpsilon), rotation, y);
  [[unroll]] for (uint j = 0; j < kPairs; ++j) {
    const uint pair = j * kLanes + gl_SubgroupInvocationID;
    if (pair >= kHeadWidth / 2) break;
    const uvec2 at = i * kHeadWidth + places_of(rotation, pair);
    made[at.x / 4][at.x % 4] = y[j].x;
    made[at.y / 4][at.y % 4] = y[j].y;
  }
}

// Stores head `i` of `made` in its page.
void store_in_page(StepState_address step, StepRow row, uint i, uint64_t pool, uint page_bytes, uint type,
                   uint kv_head) {
  const uint64_t to = head_in_page(step, row, pool, page_bytes, kv_head, cache_head_bytes(type, kHeadWidth));
  const uint each = type == kCacheQ8 ? 32 : 1;  // values that a thread stores at a time
  for (uint at = gl_LocalInvocationIndex; at < kHeadWidth / each; at += GROUP) {
    const uint from = i * kHeadWidth + at * each;
    if (type == kCacheF32) float_address(to).at[at] = made[from / 4][from % 4];
    else if (type == kCacheF16) uint16_address(to).at[at] = uint16_t(f32_to_f16(made[from / 4][from % 4]));
    else {
      float values[32];
      [[unroll]] for (uint j = 0; j < 32; ++j) values[j] = made[from / 4 + j / 4][j % 4];
      store_q8_0(to + at * 34, values);
    }
  }
}

// Makes the group's heads; `newest`: the group takes the newest position. All threads call it.
void make_heads(StepState_address step, uint t, StepRow row, uint kv_head, bool newest) {
  const vec2 factors = factors_of_token(t);
  const bool stores_value = uint64_t(p.v) != 0;
  const uint count = kHeadsPerKv + (!newest ? 0 : stores_value ? 2 : 1);
  [[dont_unroll]] for (uint i = gl_SubgroupID; i < count; i += kSubgroups)
    make_head_of_group(i, t, row.position, kv_head, factors);
  barrier();
  if (!newest) return;
  store_in_page(step, row, kHeadsPerKv, uint64_t(p.keys), p.key_page_bytes, kKeyType, kv_head);
  if (stores_value)
    store_in_page(step, row, kHeadsPerKv + 1, uint64_t(p.values), p.value_page_bytes, kValueType, kv_head);
  chain_group_barrier();  // the group reads them afterwards
}
#endif
