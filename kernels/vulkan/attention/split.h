// The kernels attention_split, attention_heads, attention_lone, attention_lone_heads and attention_behind: a
// KV split (attention_split.comp says how). They differ in where their queries come from (queries_given.h,
// queries_made.h) and in what ranges their groups take (ranges_even.h, ranges_of_lone_rows.h,
// ranges_behind_prefixes.h). They include one of each before this file.
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/group_ticket.h"
#include "kernels/vulkan/attention/cache_chunk.h"
#include "kernels/gpu/q8x16.h"

const uint kKeyChunks = kKeyWidth / kChunk, kValueChunks = kValueWidth / kChunk;
// The chunks of a head are dealt out to a power of two of lanes, as many as have a chunk each. Where the
// number of chunks is no multiple of that, the last lanes have one chunk less, and repeat the last one
// without effect.
const uint kChunks = kKeyChunks > kValueChunks ? kKeyChunks : kValueChunks;
const uint kBusyLanes = kChunks >= 64 ? 64 : kChunks >= 32 ? 32 : kChunks >= 16 ? 16 : kChunks >= 8 ? 8
                      : kChunks >= 4 ? 4 : kChunks >= 2 ? 2 : 1;
const uint kTeamLanes = kBusyLanes < kLanes ? kBusyLanes : kLanes;  // lanes that take a position together
const uint kTeams = GROUP / kTeamLanes;
const uint kLaneKeyChunks = (kKeyChunks + kTeamLanes - 1) / kTeamLanes;  // chunks that a lane has
const uint kLaneValueChunks = (kValueChunks + kTeamLanes - 1) / kTeamLanes;
const uint kLaneChunks = kLaneKeyChunks > kLaneValueChunks ? kLaneKeyChunks : kLaneValueChunks;
const uint kHeadsInRegisters = kLaneChunks < 8 ? 8 / kLaneChunks : 1;  // query heads
const uint kHeadsAtOnce = kHeadsInRegisters < kHeadsPerKv ? kHeadsInRegisters : kHeadsPerKv;
// Positions of a team whose loads are under way together.
const uint kPositionsAtOnce = kLaneChunks < 4 ? 4 / kLaneChunks : 1;

const uint kMergedHeads = 8;  // heads whose ranges the last group merges at once
const uint kLoadsAtOnce = 8;    // loads of partial results that are under way together
// The weighted sums of the subgroups of a group meet in shared memory, of as many subgroups at once as fit.
const uint kTeamSums = kHeadsAtOnce * kValueWidth;  // weighted sums of a team, or of a subgroup
const uint kSubgroupsThatFit = 4096 / kTeamSums;
const uint kSubgroupsAtOnce =
    kSubgroupsThatFit == 0 ? 1 : kSubgroupsThatFit < kSubgroups ? kSubgroupsThatFit : kSubgroups;
const uint kThreadOutputs = (kTeamSums / 4 + GROUP - 1) / GROUP;  // fours of values that a thread merges
shared vec4 subgroup_sums[kSubgroupsAtOnce * kTeamSums / 4];
shared float subgroup_max[kHeadsAtOnce * kSubgroups];     // [head][subgroup], the largest score
shared float subgroup_weight[kHeadsAtOnce * kSubgroups];  // [head][subgroup], the sum of weights
shared float split_weight[kMergedHeads * kSplits];

// The positions [begin, end) that this group takes. The page of `begin` may begin earlier.
struct Range {
  uint sequence, begin, end, splits;  // splits: how many ranges the token has
};

// The weight of a score that is `below` (negative or 0) under the maximum.
float weight_of(float below) { return exp2(below * 1.44269504); }

uint64_t position_at(uint64_t pool, uint64_t page, uint page_bytes, uint kv_head, uint position, uint bytes) {
  return pool + page * page_bytes + uint64_t(kv_head * kPageTokens + position % kPageTokens) * bytes;
}

// The state of an online softmax.
struct Online {
  float maximum, sum;
};

// What a lane holds for kHeadsAtOnce query heads: its chunks of the queries, its chunks of the weighted sums
// of values.
const uint kLaneKeyValues = kLaneKeyChunks * kChunk, kLaneValueValues = kLaneValueChunks * kChunk;
float q[kHeadsAtOnce * kLaneKeyValues], sums[kHeadsAtOnce * kLaneValueValues];
Online online[kHeadsAtOnce];

// The i-th chunk of a lane among the `chunks` of a head, and whether the lane has it.
bool is_lane_chunk(uint lane, uint i, uint chunks) {
  return chunks % kTeamLanes == 0 || lane + i * kTeamLanes < chunks;
}
uint lane_chunk(uint lane, uint i, uint chunks) {
  return is_lane_chunk(lane, i, chunks) ? lane + i * kTeamLanes : chunks - 1;
}

// Merges the teams of each subgroup, against the subgroup's maximum. Loops over heads contain no loop whose
// length is not a constant: Mesa would not unroll them, and would pick from arrays by comparing indices.
void merge_teams(uint lane) {
  [[unroll]] for (uint h = 0; h < kHeadsAtOnce; ++h) {
    const float maximum = lanes_max(online[h].maximum), rescale = weight_of(online[h].maximum - maximum);
    const float sum = lanes_sum(lane == 0 ? online[h].sum * rescale : 0);
    if (gl_SubgroupInvocationID == 0) {
      subgroup_max[h * kSubgroups + gl_SubgroupID] = maximum;
      subgroup_weight[h * kSubgroups + gl_SubgroupID] = sum;
    }
    [[unroll]] for (uint i = 0; i < kLaneValueValues; ++i) {
      float value = sums[h * kLaneValueValues + i] * rescale;
      [[unroll]] for (uint d = kTeamLanes; d < kLanes; d *= 2) value += subgroupShuffleXor(value, d);
      sums[h * kLaneValueValues + i] = value;
    }
  }
}

// Maximum and sum of weights over all subgroups.
Online total_of(uint h) {
  Online all = Online(kNone, 0);
  [[dont_unroll]] for (uint i = 0; i < kSubgroups; ++i)
    all.maximum = max(all.maximum, subgroup_max[h * kSubgroups + i]);
  [[dont_unroll]] for (uint i = 0; i < kSubgroups; ++i)
    all.sum += subgroup_weight[h * kSubgroups + i] *
        weight_of(subgroup_max[h * kSubgroups + i] - all.maximum);
  return all;
}

// Stores four of a token's values, from value `at` on, in y and in the form of the next matmul. Four
// neighbouring lanes have 16 values, as q8x16 needs them.
void store_y(uint t, uint at, vec4 y) {
  const uint width = kHeads * kValueWidth;
  vec4_address(uint64_t(p.y)).at[(t * width + at) / 4] = y;
  if (kMayStoreHalves && stores_halves()) {
    store_as_halves(t * width + at, y);
    return;
  }
  if (uint64_t(p.rounded) == 0) return;
  store_q8x16(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(width), width, at / 4, y, dot(y, y));
}

// Stores values at .. at + 3 of the heads from `first` on: the result, or that of this range where there are
// several.
void store(Range range, uint t, uint first, uint at, uint split, vec4 value) {
  const uint h = at / kValueWidth, k = at % kValueWidth;
  const Online all = total_of(h);
  if (range.splits > 1) {
    float_address to = partial(t, first + h, split);
    vec4_address(uint64_t(to)).at[1 + k / 4] = value;
    if (k == 0) vec2_address(uint64_t(to)).at[0] = vec2(all.maximum, all.sum);
    return;
  }
  const float sink = sink_of(first + h), maximum = max(all.maximum, sink);
  const float rescale = weight_of(all.maximum - maximum);
  const float sum = all.sum * rescale + (sink == kNone ? 0 : weight_of(sink - maximum));
  store_y(t, first * kValueWidth + at, value * (rescale / sum));
}

// Merges the subgroups of a group, in their order, and stores the results of heads first .. first + count -
// 1.
void merge_subgroups(Range range, uint t, uint first, uint count, uint split, uint lane) {
  merge_teams(lane);
  vec4 outputs[kThreadOutputs];
  [[unroll]] for (uint o = 0; o < kThreadOutputs; ++o) outputs[o] = vec4(0);
  [[dont_unroll]] for (uint from = 0; from < kSubgroups; from += kSubgroupsAtOnce) {
    if (from > 0) barrier();
    if (gl_SubgroupID >= from && gl_SubgroupID < from + kSubgroupsAtOnce &&
        gl_SubgroupInvocationID < kTeamLanes)
      [[unroll]] for (uint h = 0; h < kHeadsAtOnce; ++h)
        [[unroll]] for (uint i = 0; i < kLaneValueValues; i += 4)
          if (is_lane_chunk(lane, i / kChunk, kValueChunks)) {
            const uint to = (gl_SubgroupID - from) * kTeamSums + h * kValueWidth +
                            (lane + i / kChunk * kTeamLanes) * kChunk + i % kChunk;
            const uint at = h * kLaneValueValues + i;
            subgroup_sums[to / 4] = vec4(sums[at], sums[at + 1], sums[at + 2], sums[at + 3]);
          }
    barrier();
    [[unroll]] for (uint o = 0; o < kThreadOutputs; ++o) {
      const uint at = min(gl_LocalInvocationIndex + o * GROUP, kTeamSums / 4 - 1), h = at * 4 / kValueWidth;
      float maximum = kNone;
      [[dont_unroll]] for (uint i = 0; i < kSubgroups; ++i)
        maximum = max(maximum, subgroup_max[h * kSubgroups + i]);
      [[dont_unroll]] for (uint i = from; i < from + kSubgroupsAtOnce && i < kSubgroups; ++i)
        outputs[o] += subgroup_sums[(i - from) * (kTeamSums / 4) + at] *
            weight_of(subgroup_max[h * kSubgroups + i] - maximum);
    }
  }
  [[unroll]] for (uint o = 0; o < kThreadOutputs; ++o) {
    const uint at = (gl_LocalInvocationIndex + o * GROUP) * 4;
    if (at < count * kValueWidth) store(range, t, first, at, split, outputs[o]);
  }
}

// The page of `position`, or of the nearest position in the range.
uint page_at(StepState_address step, Range range, uint position) {
  return page_of(step, range.sequence, clamp(position, range.begin, range.end - 1));
}

uint first_position(Range range) { return range.begin / kPageTokens * kPageTokens; }

// The pages of the positions that this thread's team takes in the round of positions from `first` on.
void pages_from(StepState_address step, Range range, uint first, out uint pages[kPositionsAtOnce]) {
  [[unroll]] for (uint b = 0; b < kPositionsAtOnce; ++b)
    pages[b] = page_at(step, range, first + b * kTeams + gl_LocalInvocationIndex / kTeamLanes);
}

// Loads the queries of heads first .. first + count - 1 of token t, of which this lane holds its chunks, and
// begins their sums.
void begin_heads(uint t, uint first, uint count, uint lane) {
  [[unroll]] for (uint h = 0; h < kHeadsAtOnce; ++h) {
    online[h] = Online(kNone, 0);
    const uint head = first + min(h, count - 1);
    [[unroll]] for (uint i = 0; i < kLaneKeyChunks * 2; ++i) {
      const uint chunk = lane_chunk(lane, i / 2, kKeyChunks);
      vec4 four = query_at(t, head, chunk * (kChunk / 4) + i % 2);
      if (!is_lane_chunk(lane, i / 2, kKeyChunks)) four = vec4(0);
      [[unroll]] for (uint j = 0; j < 4; ++j) q[(h * kLaneKeyChunks * 2 + i) * 4 + j] = four[j];
    }
    [[unroll]] for (uint i = 0; i < kLaneValueValues; ++i) sums[h * kLaneValueValues + i] = 0;
  }
}

// Adds a chunk's part of the score of query head h, chunk i of this lane.
float add_products(uint h, uint i, float key[kChunk], float score) {
  const uint at = (h * kLaneKeyChunks + i) * kChunk;
  [[unroll]] for (uint j = 0; j < kChunk; ++j) score = fma(q[at + j], key[j], score);
  return score;
}

// The score of which each lane of a team has a part. Scores are scaled, not queries: that would wait for the
// queries before keys are loaded.
float team_score(float score) {
  for (uint d = 1; d < kTeamLanes; d *= 2) score += subgroupShuffleXor(score, d);
  score *= p.scale;
  return kSoftcap != 0 ? softcap_f32(uintBitsToFloat(kSoftcap), score) : score;
}

// What head h has summed, against a maximum that is as large or larger.
void set_maximum(uint h, float maximum) {
  const float rescale = weight_of(online[h].maximum - maximum);
  online[h] = Online(maximum, online[h].sum * rescale);
  [[unroll]] for (uint i = 0; i < kLaneValueValues; ++i) sums[h * kLaneValueValues + i] *= rescale;
}

uint64_t key_at(uint64_t page, uint kv_head, uint position) {
  return position_at(uint64_t(p.keys), page, p.key_page_bytes, kv_head, position,
                     cache_head_bytes(kKeyType, kKeyWidth));
}
uint64_t value_at(uint64_t page, uint kv_head, uint position) {
  return position_at(uint64_t(p.values), page, p.value_page_bytes, kv_head, position,
                     cache_head_bytes(kValueType, value_stride()));
}

// Attention of query heads first .. first + count - 1 over the range; `pages` are those of the first round.
void attend(StepState_address step, Range range, uint t, uint kv_head, uint first, uint count, uint split,
            uint pages[kPositionsAtOnce]) {
  const uint team = gl_LocalInvocationIndex / kTeamLanes, lane = gl_LocalInvocationIndex % kTeamLanes;
  begin_heads(t, first, count, lane);

  const uint start = first_position(range);
  [[dont_unroll]] for (uint s = start; s < range.end; s += kPositionsAtOnce * kTeams) {
    Chunk keys[kPositionsAtOnce * kLaneKeyChunks], values[kPositionsAtOnce * kLaneValueChunks];
    bool live[kPositionsAtOnce];
    [[unroll]] for (uint b = 0; b < kPositionsAtOnce; ++b) {
      const uint wanted = s + b * kTeams + team, position = clamp(wanted, range.begin, range.end - 1);
      live[b] = wanted == position;
      const uint64_t page = pages[b];
      const uint64_t key = key_at(page, kv_head, position), value = value_at(page, kv_head, position);
      [[unroll]] for (uint i = 0; i < kLaneKeyChunks; ++i)
        keys[b * kLaneKeyChunks + i] = load_chunk(kKeyType, key, lane_chunk(lane, i, kKeyChunks));
      [[unroll]] for (uint i = 0; i < kLaneValueChunks; ++i)
        values[b * kLaneValueChunks + i] = load_chunk(kValueType, value, lane_chunk(lane, i, kValueChunks));
    }
    // The pages of the next round are loaded during this one.
    pages_from(step, range, s + kPositionsAtOnce * kTeams, pages);
    float scores[kHeadsAtOnce * kPositionsAtOnce];
    [[unroll]] for (uint b = 0; b < kPositionsAtOnce; ++b) {
      [[unroll]] for (uint h = 0; h < kHeadsAtOnce; ++h) scores[h * kPositionsAtOnce + b] = 0;
      [[unroll]] for (uint i = 0; i < kLaneKeyChunks; ++i) {
        float key[kChunk];
        decode_chunk(kKeyType, keys[b * kLaneKeyChunks + i], key);
        [[unroll]] for (uint h = 0; h < kHeadsAtOnce; ++h)
          scores[h * kPositionsAtOnce + b] = add_products(h, i, key, scores[h * kPositionsAtOnce + b]);
      }
      [[unroll]] for (uint h = 0; h < kHeadsAtOnce; ++h)
        scores[h * kPositionsAtOnce + b] = team_score(scores[h * kPositionsAtOnce + b]);
    }
    // Scores become weights against the new maximum.
    [[unroll]] for (uint h = 0; h < kHeadsAtOnce; ++h) {
      float maximum = online[h].maximum;
      [[unroll]] for (uint b = 0; b < kPositionsAtOnce; ++b)
        maximum = live[b] ? max(maximum, scores[h * kPositionsAtOnce + b]) : maximum;
      set_maximum(h, maximum);
      [[unroll]] for (uint b = 0; b < kPositionsAtOnce; ++b) {
        const float weight = live[b] ? weight_of(scores[h * kPositionsAtOnce + b] - maximum) : 0;
        scores[h * kPositionsAtOnce + b] = weight;
        online[h].sum += weight;
      }
    }
    [[unroll]] for (uint b = 0; b < kPositionsAtOnce; ++b)
      [[unroll]] for (uint i = 0; i < kLaneValueChunks; ++i) {
        float value[kChunk];
        decode_chunk(kValueType, values[b * kLaneValueChunks + i], value);
        [[unroll]] for (uint h = 0; h < kHeadsAtOnce; ++h)
          [[unroll]] for (uint j = 0; j < kChunk; ++j) {
            const uint at = (h * kLaneValueChunks + i) * kChunk + j;
            sums[at] = fma(scores[h * kPositionsAtOnce + b], value[j], sums[at]);
          }
      }
  }
  merge_subgroups(range, t, first, count, split, lane);
  barrier();
}

// Merges the ranges of heads first .. first + count - 1; the last group calls it.
void merge_splits(uint splits, uint t, uint first, uint count) {
  [[dont_unroll]] for (uint h = gl_SubgroupID; h < count; h += gl_NumSubgroups) {
    const float sink = sink_of(first + h);
    float maximum = sink;
    [[dont_unroll]] for (uint s = gl_SubgroupInvocationID; s < splits; s += gl_SubgroupSize)
      maximum = max(maximum, partial(t, first + h, s).at[0]);
    maximum = lanes_max(maximum);
    float sum = 0;
    [[dont_unroll]] for (uint s = gl_SubgroupInvocationID; s < splits; s += gl_SubgroupSize) {
      const float weight = weight_of(partial(t, first + h, s).at[0] - maximum);
      split_weight[h * kSplits + s] = weight;
      sum += weight * partial(t, first + h, s).at[1];
    }
    sum = lanes_sum(sum) + (sink == kNone ? 0 : weight_of(sink - maximum));
    [[dont_unroll]] for (uint s = gl_SubgroupInvocationID; s < splits; s += gl_SubgroupSize)
      split_weight[h * kSplits + s] /= sum;
  }
  barrier();
  [[dont_unroll]] for (uint i = gl_LocalInvocationIndex * 4; i < count * kValueWidth; i += GROUP * 4) {
    const uint h = i / kValueWidth, k = i % kValueWidth;
    vec4 y = vec4(0);
    [[dont_unroll]] for (uint s = 0; s < splits; s += kLoadsAtOnce) {
      vec4 values[kLoadsAtOnce];
      [[unroll]] for (uint j = 0; j < kLoadsAtOnce; ++j)
        values[j] = vec4_address(uint64_t(partial(t, first + h, min(s + j, splits - 1)))).at[1 + k / 4];
      [[unroll]] for (uint j = 0; j < kLoadsAtOnce; ++j)
        if (s + j < splits) y += values[j] * split_weight[h * kSplits + s + j];
    }
    store_y(t, first * kValueWidth + i, y);
  }
  barrier();
}

// Groups without a range do not wait in the chain; the group of the first token and the first range always
// has one.
void attend_range(uint64_t chain) {
  StepState_address step = step_of(p.step);
  find_prefixes(step);
  Share share;
  if (!find_share(step, share)) return;
  const uint t = share.t, kv_head = gl_WorkGroupID.x % kKvHeads;
  const StepRow row = step.state.row[t];
  const uint begin = begin_of(row, t), end = row.position + 1;
  find_prefix(t);
  const uint from = (begin / kPageTokens + share.split * share.each) * kPageTokens;
  const uint splits = prefix_ranges + share.splits;
  const Range range =
      Range(row.sequence, max(begin, from), min(end, from + share.each * kPageTokens), splits);
  uint first_pages[kPositionsAtOnce];
  pages_from(step, range, first_position(range), first_pages);
  chain_wait(chain);
  make_heads(step, t, row, kv_head, range.end == end);
  [[dont_unroll]] for (uint h = 0; h < kHeadsPerKv; h += kHeadsAtOnce)
    attend(step, range, t, kv_head, kv_head * kHeadsPerKv + h, min(kHeadsPerKv - h, kHeadsAtOnce),
           prefix_ranges + share.split, first_pages);
  if (splits == 1 || !is_last_group(p.counters, t * kKvHeads + kv_head, share.splits)) return;
  [[dont_unroll]] for (uint h = 0; h < kHeadsPerKv; h += kMergedHeads)
    merge_splits(splits, t, kv_head * kHeadsPerKv + h, min(kHeadsPerKv - h, kMergedHeads));
}

void main() {
  const uint64_t chain = packUint2x32(uvec2(p.heads, p.kv_heads));
  attend_range(chain);
  chain_end(chain);
}
