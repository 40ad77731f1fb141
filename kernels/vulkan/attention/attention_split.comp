// attention_split: few tokens over long sequences. Group (t, kv head; j) takes part j of the positions, whole pages,
// and all query heads of its KV head, kTaken at a time. A row of kRowLanes lanes takes a position: each lane has
// chunks of 8 values of the query, multiplies them with those of the key, and sums weighted chunks of values. Softmax
// runs online in each row; rows are merged at the end, in each subgroup and then all subgroups at once, and parts by the
// last group to arrive, all in a fixed order. How positions are split depends on the sequence and the model alone.
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#include "kernels/vulkan/chain.h"
#include "kernels/vulkan/group_ticket.h"
#include "kernels/vulkan/lanes.h"
#include "kernels/vulkan/attention/cache_chunk.h"
#include "kernels/vulkan/convert/q8x16.h"

layout(constant_id = 2) const uint kHeads = 1;
layout(constant_id = 3) const uint kKvHeads = 1;
#ifdef MAKES_HEADS
layout(push_constant, scalar) uniform Push { AttentionHeadsBlock p; };
layout(constant_id = 4) const uint kHeadWidth = 64;
layout(constant_id = 5) const uint kKeyType = 1;
layout(constant_id = 6) const uint kValueType = 1;
layout(constant_id = 7) const uint kSoftcap = 0;  // the bits of it
const uint kKeyWidth = kHeadWidth, kValueWidth = kHeadWidth;
#else
layout(push_constant, scalar) uniform Push { AttentionBlock p; };
layout(constant_id = 4) const uint kKeyWidth = 64;
layout(constant_id = 5) const uint kValueWidth = 64;
layout(constant_id = 6) const uint kKeyType = 1;
layout(constant_id = 7) const uint kValueType = 1;
layout(constant_id = 8) const uint kSoftcap = 0;
#endif

GRETA_ABI_BUFFER(vec4, vec4, 16)

const uint kSharing = kHeads / kKvHeads;  // query heads of a KV head
const uint kKeyChunks = kKeyWidth / kChunk, kValueChunks = kValueWidth / kChunk;
// The most lanes, a power of two, that have a chunk each. Where chunks are no multiple of it, the last lanes have one less
// than the first, and repeat the last chunk to no effect.
const uint kChunks = kKeyChunks > kValueChunks ? kKeyChunks : kValueChunks;
const uint kFilled = kChunks >= 64 ? 64 : kChunks >= 32 ? 32 : kChunks >= 16 ? 16 : kChunks >= 8 ? 8 : kChunks >= 4 ? 4
                   : kChunks >= 2 ? 2 : 1;
const uint kRowLanes = kFilled < kLanes ? kFilled : kLanes;
const uint kRows = GROUP / kRowLanes;
const uint kKeyOwn = (kKeyChunks + kRowLanes - 1) / kRowLanes;  // chunks of a lane
const uint kValueOwn = (kValueChunks + kRowLanes - 1) / kRowLanes;
const uint kOwn = kKeyOwn > kValueOwn ? kKeyOwn : kValueOwn;
const uint kFitting = kOwn < 8 ? 8 / kOwn : 1;  // by registers
const uint kTaken = kFitting < kSharing ? kFitting : kSharing;
const uint kBatch = kOwn < 4 ? 4 / kOwn : 1;  // positions of a row whose loads are under way together

const float kNone = -3e38;  // below every score
const uint kMerged = 8;     // heads whose parts are merged together
const uint kSplits = attention_splits(kKvHeads);
const uint kAhead = 8;      // loads of partial values that are under way together
const uint kLeastPages = 2;  // of a part: to merge parts takes as long as to read some pages

// What the subgroups of a group have found, as many together as fit.
const uint kSubgroups = GROUP / kLanes;
const uint kFound = kTaken * kValueWidth, kRoom = 4096 / kFound;
const uint kTogether = kRoom == 0 ? 1 : kRoom < kSubgroups ? kRoom : kSubgroups;
const uint kOutputs = (kFound / 4 + GROUP - 1) / GROUP;  // of a thread, four values each
shared vec4 found[kTogether * kFound / 4];
shared float found_max[kTaken * kSubgroups], found_sum[kTaken * kSubgroups];
shared float split_weight[kMerged * kSplits];

#ifdef MAKES_HEADS
#include "kernels/vulkan/attention/attention_heads.h"
float sink_of(uint head) { return kNone; }
uint value_stride() { return kHeadWidth; }
vec4 query_at(uint t, uint head, uint i) { return made[head % kSharing * (kHeadWidth / 4) + i]; }
#else
float sink_of(uint head) { return uint64_t(p.sinks) != 0 ? p.sinks.at[head] : kNone; }
uint value_stride() { return p.value_stride; }
vec4 query_at(uint t, uint head, uint i) { return vec4_address(p.q).at[(t * kHeads + head) * (kKeyWidth / 4) + i]; }
#endif

// The positions that this group takes: [begin, end), none before `begin` although the page may begin earlier.
struct Part {
  uint sequence, begin, end, splits;
};

float weight_of(float below) { return exp2(below * 1.44269504); }

// One part's {max, sum}, at 16 bytes its values.
float_address partial(uint t, uint head, uint split) {
  return float_address(uint64_t(p.scratch) +
                       uint64_t((t * kHeads + head) * kMaxAttentionSplits + split) * (kValueWidth + 4) * 4);
}

uint64_t position_at(uint64_t pool, uint64_t page, uint page_bytes, uint kv_head, uint position, uint bytes) {
  return pool + page * page_bytes + uint64_t(kv_head * kPageTokens + position % kPageTokens) * bytes;
}

struct Online {
  float most, sum;
};

// Of this thread: chunks of kTaken queries, and of the weighted sums of values.
const uint kKeyValues = kKeyOwn * kChunk, kValueValues = kValueOwn * kChunk;
float q[kTaken * kKeyValues], sums[kTaken * kValueValues];
Online online[kTaken];

// The i-th chunk of this lane among `chunks` of a head.
bool is_own(uint lane, uint i, uint chunks) { return chunks % kRowLanes == 0 || lane + i * kRowLanes < chunks; }
uint chunk_at(uint lane, uint i, uint chunks) {
  return is_own(lane, i, chunks) ? lane + i * kRowLanes : chunks - 1;
}

// The rows of each subgroup into one, against its own maximum. Loops over heads hold no loop whose length is not a
// constant: Mesa leaves those rolled up, and then picks from arrays by comparing.
void merge_rows(uint lane) {
  [[unroll]] for (uint h = 0; h < kTaken; ++h) {
    const float most = lanes_max(online[h].most), rescale = weight_of(online[h].most - most);
    const float sum = lanes_sum(lane == 0 ? online[h].sum * rescale : 0);
    if (gl_SubgroupInvocationID == 0) {
      found_max[h * kSubgroups + gl_SubgroupID] = most;
      found_sum[h * kSubgroups + gl_SubgroupID] = sum;
    }
    [[unroll]] for (uint i = 0; i < kValueValues; ++i) {
      float value = sums[h * kValueValues + i] * rescale;
      [[unroll]] for (uint d = kRowLanes; d < kLanes; d *= 2) value += subgroupShuffleXor(value, d);
      sums[h * kValueValues + i] = value;
    }
  }
}

// Maximum and sum over all subgroups.
Online total_of(uint h) {
  Online all = Online(kNone, 0);
  [[dont_unroll]] for (uint i = 0; i < kSubgroups; ++i) all.most = max(all.most, found_max[h * kSubgroups + i]);
  [[dont_unroll]] for (uint i = 0; i < kSubgroups; ++i)
    all.sum += found_sum[h * kSubgroups + i] * weight_of(found_max[h * kSubgroups + i] - all.most);
  return all;
}

// Four of a token's values, from value `at` on, and as the next matmul reads them: four lanes side by side have 16.
void store_y(uint t, uint at, vec4 y) {
  const uint width = kHeads * kValueWidth;
  vec4_address(uint64_t(p.y)).at[(t * width + at) / 4] = y;
  if (uint64_t(p.rounded) == 0) return;
  store_q8x16(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(width), width, at / 4, y, dot(y, y));
}

// Values `at` .. `at` + 3 of the heads from `first` on, or this part's share of them.
void store(Part part, uint t, uint first, uint at, uint split, vec4 value) {
  const uint h = at / kValueWidth, k = at % kValueWidth;
  const Online all = total_of(h);
  if (part.splits > 1) {
    float_address to = partial(t, first + h, split);
    vec4_address(uint64_t(to)).at[1 + k / 4] = value;
    if (k == 0) vec2_address(uint64_t(to)).at[0] = vec2(all.most, all.sum);
    return;
  }
  const float sink = sink_of(first + h), most = max(all.most, sink), rescale = weight_of(all.most - most);
  const float sum = all.sum * rescale + (sink == kNone ? 0 : weight_of(sink - most));
  store_y(t, first * kValueWidth + at, value * (rescale / sum));
}

// Subgroups of a group into one, in their order; results of heads first .. first + count - 1.
void merge_subgroups(Part part, uint t, uint first, uint count, uint split, uint lane) {
  merge_rows(lane);
  vec4 outputs[kOutputs];
  [[unroll]] for (uint o = 0; o < kOutputs; ++o) outputs[o] = vec4(0);
  [[dont_unroll]] for (uint from = 0; from < kSubgroups; from += kTogether) {
    if (from > 0) barrier();
    if (gl_SubgroupID >= from && gl_SubgroupID < from + kTogether && gl_SubgroupInvocationID < kRowLanes)
      [[unroll]] for (uint h = 0; h < kTaken; ++h)
        [[unroll]] for (uint i = 0; i < kValueValues; i += 4)
          if (is_own(lane, i / kChunk, kValueChunks)) {
            const uint to = (gl_SubgroupID - from) * kFound + h * kValueWidth + (lane + i / kChunk * kRowLanes) * kChunk + i % kChunk;
            const uint at = h * kValueValues + i;
            found[to / 4] = vec4(sums[at], sums[at + 1], sums[at + 2], sums[at + 3]);
          }
    barrier();
    [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
      const uint at = min(gl_LocalInvocationIndex + o * GROUP, kFound / 4 - 1), h = at * 4 / kValueWidth;
      float most = kNone;
      [[dont_unroll]] for (uint i = 0; i < kSubgroups; ++i) most = max(most, found_max[h * kSubgroups + i]);
      [[dont_unroll]] for (uint i = from; i < from + kTogether && i < kSubgroups; ++i)
        outputs[o] += found[(i - from) * (kFound / 4) + at] * weight_of(found_max[h * kSubgroups + i] - most);
    }
  }
  [[unroll]] for (uint o = 0; o < kOutputs; ++o) {
    const uint at = (gl_LocalInvocationIndex + o * GROUP) * 4;
    if (at < count * kValueWidth) store(part, t, first, at, split, outputs[o]);
  }
}

// The page of `position`, or of the nearest one that the part has.
uint page_at(StepState_address step, Part part, uint position) {
  return page_of(step, part.sequence, clamp(position, part.begin, part.end - 1));
}

uint first_position(Part part) { return part.begin / kPageTokens * kPageTokens; }

void pages_from(StepState_address step, Part part, uint first, out uint pages[kBatch]) {
  [[unroll]] for (uint b = 0; b < kBatch; ++b)
    pages[b] = page_at(step, part, first + b * kRows + gl_LocalInvocationIndex / kRowLanes);
}

// `pages` are those of the first round.
void attend(StepState_address step, Part part, uint t, uint kv_head, uint first, uint count, uint split, uint pages[kBatch]) {
  const uint row = gl_LocalInvocationIndex / kRowLanes, lane = gl_LocalInvocationIndex % kRowLanes;
  const uint key_bytes = cache_head_bytes(kKeyType, kKeyWidth);
  const uint value_bytes = cache_head_bytes(kValueType, value_stride());
  [[unroll]] for (uint h = 0; h < kTaken; ++h) {
    online[h] = Online(kNone, 0);
    const uint head = first + min(h, count - 1);
    [[unroll]] for (uint i = 0; i < kKeyOwn * 2; ++i) {
      const uint chunk = chunk_at(lane, i / 2, kKeyChunks);
      vec4 four = query_at(t, head, chunk * (kChunk / 4) + i % 2);
      if (!is_own(lane, i / 2, kKeyChunks)) four = vec4(0);
      [[unroll]] for (uint j = 0; j < 4; ++j) q[(h * kKeyOwn * 2 + i) * 4 + j] = four[j];
    }
    [[unroll]] for (uint i = 0; i < kValueValues; ++i) sums[h * kValueValues + i] = 0;
  }

  const uint start = first_position(part);
  [[dont_unroll]] for (uint s = start; s < part.end; s += kBatch * kRows) {
    Chunk keys[kBatch * kKeyOwn], values[kBatch * kValueOwn];
    bool live[kBatch];
    [[unroll]] for (uint b = 0; b < kBatch; ++b) {
      const uint wanted = s + b * kRows + row, position = clamp(wanted, part.begin, part.end - 1);
      live[b] = wanted == position;
      const uint64_t page = pages[b];
      const uint64_t key = position_at(uint64_t(p.keys), page, p.key_page_bytes, kv_head, position, key_bytes);
      const uint64_t value = position_at(uint64_t(p.values), page, p.value_page_bytes, kv_head, position, value_bytes);
      [[unroll]] for (uint i = 0; i < kKeyOwn; ++i)
        keys[b * kKeyOwn + i] = load_chunk(kKeyType, key, chunk_at(lane, i, kKeyChunks));
      [[unroll]] for (uint i = 0; i < kValueOwn; ++i)
        values[b * kValueOwn + i] = load_chunk(kValueType, value, chunk_at(lane, i, kValueChunks));
    }
    pages_from(step, part, s + kBatch * kRows, pages);  // of the next round, on their way while this one is worked on
    float scores[kTaken * kBatch];
    [[unroll]] for (uint b = 0; b < kBatch; ++b) {
      [[unroll]] for (uint h = 0; h < kTaken; ++h) scores[h * kBatch + b] = 0;
      [[unroll]] for (uint i = 0; i < kKeyOwn; ++i) {
        float key[kChunk];
        decode_chunk(kKeyType, keys[b * kKeyOwn + i], key);
        [[unroll]] for (uint h = 0; h < kTaken; ++h)
          [[unroll]] for (uint j = 0; j < kChunk; ++j)
            scores[h * kBatch + b] = fma(q[(h * kKeyOwn + i) * kChunk + j], key[j], scores[h * kBatch + b]);
      }
      [[unroll]] for (uint h = 0; h < kTaken; ++h) {
        for (uint d = 1; d < kRowLanes; d *= 2) scores[h * kBatch + b] += subgroupShuffleXor(scores[h * kBatch + b], d);
        scores[h * kBatch + b] *= p.scale;  // and not the queries: they would be waited for before keys are asked for
        if (kSoftcap != 0) scores[h * kBatch + b] = softcap_f32(uintBitsToFloat(kSoftcap), scores[h * kBatch + b]);
      }
    }
    // Scores become weights against the new maximum.
    [[unroll]] for (uint h = 0; h < kTaken; ++h) {
      float most = online[h].most;
      [[unroll]] for (uint b = 0; b < kBatch; ++b) most = live[b] ? max(most, scores[h * kBatch + b]) : most;
      const float rescale = weight_of(online[h].most - most);
      online[h] = Online(most, online[h].sum * rescale);
      [[unroll]] for (uint b = 0; b < kBatch; ++b) {
        const float weight = live[b] ? weight_of(scores[h * kBatch + b] - most) : 0;
        scores[h * kBatch + b] = weight;
        online[h].sum += weight;
      }
      [[unroll]] for (uint i = 0; i < kValueValues; ++i) sums[h * kValueValues + i] *= rescale;
    }
    [[unroll]] for (uint b = 0; b < kBatch; ++b)
      [[unroll]] for (uint i = 0; i < kValueOwn; ++i) {
        float value[kChunk];
        decode_chunk(kValueType, values[b * kValueOwn + i], value);
        [[unroll]] for (uint h = 0; h < kTaken; ++h)
          [[unroll]] for (uint j = 0; j < kChunk; ++j) {
            const uint at = (h * kValueOwn + i) * kChunk + j;
            sums[at] = fma(scores[h * kBatch + b], value[j], sums[at]);
          }
      }
  }
  merge_subgroups(part, t, first, count, split, lane);
  barrier();
}

// Of heads first .. first + count - 1, by the last group to arrive.
void merge_splits(uint splits, uint t, uint first, uint count) {
  [[dont_unroll]] for (uint h = gl_SubgroupID; h < count; h += gl_NumSubgroups) {
    const float sink = sink_of(first + h);
    float most = sink;
    [[dont_unroll]] for (uint s = gl_SubgroupInvocationID; s < splits; s += gl_SubgroupSize)
      most = max(most, partial(t, first + h, s).at[0]);
    most = lanes_max(most);
    float sum = 0;
    [[dont_unroll]] for (uint s = gl_SubgroupInvocationID; s < splits; s += gl_SubgroupSize) {
      const float weight = weight_of(partial(t, first + h, s).at[0] - most);
      split_weight[h * kSplits + s] = weight;
      sum += weight * partial(t, first + h, s).at[1];
    }
    sum = lanes_sum(sum) + (sink == kNone ? 0 : weight_of(sink - most));
    [[dont_unroll]] for (uint s = gl_SubgroupInvocationID; s < splits; s += gl_SubgroupSize)
      split_weight[h * kSplits + s] /= sum;
  }
  barrier();
  [[dont_unroll]] for (uint i = gl_LocalInvocationIndex * 4; i < count * kValueWidth; i += GROUP * 4) {
    const uint h = i / kValueWidth, k = i % kValueWidth;
    vec4 y = vec4(0);
    [[dont_unroll]] for (uint s = 0; s < splits; s += kAhead) {
      vec4 values[kAhead];
      [[unroll]] for (uint j = 0; j < kAhead; ++j)
        values[j] = vec4_address(uint64_t(partial(t, first + h, min(s + j, splits - 1)))).at[1 + k / 4];
      [[unroll]] for (uint j = 0; j < kAhead; ++j)
        if (s + j < splits) y += values[j] * split_weight[h * kSplits + s + j];
    }
    store_y(t, first * kValueWidth + i, y);
  }
  barrier();
}

// Groups without a part do not wait: that of the first token and the first part always has one.
void attend_part(uint64_t chain) {
  StepState_address step = step_of(p.step);
  const uint t = gl_WorkGroupID.x / kKvHeads, kv_head = gl_WorkGroupID.x % kKvHeads, split = gl_WorkGroupID.y;
  const StepRow row = step.state.row[t];
  if (t >= live_rows(step, kRowsTokens)) return;
  const uint end = row.position + 1, begin = p.window != 0 && p.window < end ? end - p.window : 0;
  const uint first_page = begin / kPageTokens, pages = (end + kPageTokens - 1) / kPageTokens - first_page;
  const uint each = max((pages + kSplits - 1) / kSplits, kLeastPages), splits = (pages + each - 1) / each;
  if (split >= splits) return;
  const uint from = (first_page + split * each) * kPageTokens;
  const Part part = Part(row.sequence, max(begin, from), min(end, from + each * kPageTokens), splits);
  uint pages_of_round[kBatch];
  pages_from(step, part, first_position(part), pages_of_round);
  chain_wait(chain);
#ifdef MAKES_HEADS
  make_heads(step, row, kv_head, part.end == end);
#endif
  [[dont_unroll]] for (uint h = 0; h < kSharing; h += kTaken)
    attend(step, part, t, kv_head, kv_head * kSharing + h, min(kSharing - h, kTaken), split, pages_of_round);
  if (splits == 1 || !is_last_group(p.counters, gl_WorkGroupID.x, splits)) return;
  [[dont_unroll]] for (uint h = 0; h < kSharing; h += kMerged)
    merge_splits(splits, t, kv_head * kSharing + h, min(kSharing - h, kMerged));
}

void main() {
  const uint64_t chain = packUint2x32(uvec2(p.heads, p.kv_heads));
  attend_part(chain);
  chain_end(chain);
}
