// attention_split: few tokens over long sequences. Group (t, kv head; j) takes part j of the positions, whole pages,
// and all query heads of its KV head, kTaken at a time. A row of kRowLanes lanes takes a position: each lane has
// chunks of 8 values of the query, multiplies them with those of the key, and sums weighted chunks of values. Softmax
// runs online in each row; rows are merged at the end, then parts by the last group to arrive, both in a fixed
// order. How positions are split depends on the sequence alone.
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "kernels/vulkan/group_ticket.h"
#include "kernels/vulkan/cache_chunk.h"

layout(push_constant, scalar) uniform Push { AttentionBlock p; };
layout(constant_id = 2) const uint kHeads = 1;
layout(constant_id = 3) const uint kKvHeads = 1;
layout(constant_id = 4) const uint kKeyWidth = 64;
layout(constant_id = 5) const uint kValueWidth = 64;
layout(constant_id = 6) const uint kKeyType = 1;
layout(constant_id = 7) const uint kValueType = 1;

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
const uint kMerged = 8;     // heads that are merged together

shared float row_max[kTaken * (GROUP / 4)], row_sum[kTaken * (GROUP / 4)];  // of each subgroup's rows
shared float merged[kTaken * kValueWidth];
shared float split_weight[kMerged * kMaxAttentionSplits];

// The positions that this group takes: [begin, end), none before `begin` although the page may begin earlier.
struct Part {
  uint sequence, begin, end, splits;
};

float weight_of(float below) { return exp2(below * 1.44269504); }

// One part's {max, sum, values}.
float_address partial(uint t, uint head, uint split) {
  return float_address(uint64_t(p.scratch) +
                       uint64_t((t * kHeads + head) * kMaxAttentionSplits + split) * (kValueWidth + 2) * 4);
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

// Rows of all subgroups into one, for kTaken heads: values into merged[], {max, sum} of all into each thread. Loops over
// heads hold no loop whose length is not a constant: Mesa leaves those rolled up, and then picks from arrays by comparing.
void merge_rows(uint lane) {
  float most[kTaken];
  [[unroll]] for (uint h = 0; h < kTaken; ++h) {
    most[h] = subgroupMax(online[h].most);
    if (gl_SubgroupInvocationID == 0) row_max[h * (GROUP / 4) + gl_SubgroupID] = most[h];
  }
  barrier();
  for (uint i = 0; i < gl_NumSubgroups; ++i)
    [[unroll]] for (uint h = 0; h < kTaken; ++h) most[h] = max(most[h], row_max[h * (GROUP / 4) + i]);
  [[unroll]] for (uint h = 0; h < kTaken; ++h) {
    const float rescale = weight_of(online[h].most - most[h]);
    const float sum = subgroupAdd(lane == 0 ? online[h].sum * rescale : 0);
    online[h] = Online(most[h], 0);
    if (gl_SubgroupInvocationID == 0) row_sum[h * (GROUP / 4) + gl_SubgroupID] = sum;
    [[unroll]] for (uint i = 0; i < kValueValues; ++i) {
      float value = sums[h * kValueValues + i] * rescale;
      [[unroll]] for (uint d = kRowLanes; d < kLanes; d *= 2) value += subgroupShuffleXor(value, d);
      sums[h * kValueValues + i] = value;
    }
  }
  for (uint from = 0; from < gl_NumSubgroups; ++from) {
    if (gl_SubgroupID == from && gl_SubgroupInvocationID < kRowLanes)
      [[unroll]] for (uint h = 0; h < kTaken; ++h)
        [[unroll]] for (uint i = 0; i < kValueValues; ++i) {
          const uint at = h * kValueWidth + (lane + i / kChunk * kRowLanes) * kChunk + i % kChunk;
          if (is_own(lane, i / kChunk, kValueChunks))
            merged[at] = (from == 0 ? 0 : merged[at]) + sums[h * kValueValues + i];
        }
    barrier();
  }
  for (uint i = 0; i < gl_NumSubgroups; ++i)
    [[unroll]] for (uint h = 0; h < kTaken; ++h) online[h].sum += row_sum[h * (GROUP / 4) + i];
}

float sink_of(uint head) { return uint64_t(p.sinks) != 0 ? p.sinks.at[head] : kNone; }

// Results of heads first .. first + count - 1, or this part's share of them.
void store(Part part, uint t, uint first, uint count, uint split) {
  [[unroll]] for (uint h = 0; h < kTaken; ++h) {
    if (h >= count) break;
    if (part.splits > 1) {
      float_address to = partial(t, first + h, split);
      if (gl_LocalInvocationIndex == 0) {
        to.at[0] = online[h].most;
        to.at[1] = online[h].sum;
      }
      for (uint i = gl_LocalInvocationIndex; i < kValueWidth; i += GROUP) to.at[2 + i] = merged[h * kValueWidth + i];
      continue;
    }
    const float sink = sink_of(first + h), most = max(online[h].most, sink);
    const float rescale = weight_of(online[h].most - most);
    const float sum = online[h].sum * rescale + (sink == kNone ? 0 : weight_of(sink - most));
    for (uint i = gl_LocalInvocationIndex; i < kValueWidth; i += GROUP)
      p.y.at[(t * kHeads + first + h) * kValueWidth + i] = merged[h * kValueWidth + i] * rescale / sum;
  }
}

void attend(StepState_address step, Part part, uint t, uint kv_head, uint first, uint count, uint split) {
  const uint row = gl_LocalInvocationIndex / kRowLanes, lane = gl_LocalInvocationIndex % kRowLanes;
  const uint key_bytes = cache_head_bytes(kKeyType, kKeyWidth);
  const uint value_bytes = cache_head_bytes(kValueType, p.value_stride);
  [[unroll]] for (uint h = 0; h < kTaken; ++h) {
    online[h] = Online(kNone, 0);
    const uint from = (t * kHeads + first + min(h, count - 1)) * kKeyWidth;
    [[unroll]] for (uint i = 0; i < kKeyOwn * 2; ++i) {
      const uint chunk = chunk_at(lane, i / 2, kKeyChunks);
      vec4 four = p.scale * vec4_address(p.q).at[(from + chunk * kChunk) / 4 + i % 2];
      if (!is_own(lane, i / 2, kKeyChunks)) four = vec4(0);
      [[unroll]] for (uint j = 0; j < 4; ++j) q[(h * kKeyOwn * 2 + i) * 4 + j] = four[j];
    }
    [[unroll]] for (uint i = 0; i < kValueValues; ++i) sums[h * kValueValues + i] = 0;
  }

  for (uint s = part.begin / kPageTokens * kPageTokens; s < part.end; s += kBatch * kRows) {
    Chunk keys[kBatch * kKeyOwn], values[kBatch * kValueOwn];
    bool live[kBatch];
    [[unroll]] for (uint b = 0; b < kBatch; ++b) {
      const uint wanted = s + b * kRows + row, position = clamp(wanted, part.begin, part.end - 1);
      live[b] = wanted == position;
      const uint64_t page = page_of(step, part.sequence, position);
      const uint64_t key = position_at(uint64_t(p.keys), page, p.key_page_bytes, kv_head, position, key_bytes);
      const uint64_t value = position_at(uint64_t(p.values), page, p.value_page_bytes, kv_head, position, value_bytes);
      [[unroll]] for (uint i = 0; i < kKeyOwn; ++i)
        keys[b * kKeyOwn + i] = load_chunk(kKeyType, key, chunk_at(lane, i, kKeyChunks));
      [[unroll]] for (uint i = 0; i < kValueOwn; ++i)
        values[b * kValueOwn + i] = load_chunk(kValueType, value, chunk_at(lane, i, kValueChunks));
    }
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
        if (p.softcap > 0) scores[h * kBatch + b] = softcap_f32(p.softcap, scores[h * kBatch + b]);
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
  merge_rows(lane);
  store(part, t, first, count, split);
  barrier();
}

// Of heads first .. first + count - 1, by the last group to arrive.
void merge_splits(uint splits, uint t, uint first, uint count) {
  for (uint h = gl_SubgroupID; h < count; h += gl_NumSubgroups) {
    const float sink = sink_of(first + h);
    float most = sink;
    for (uint s = gl_SubgroupInvocationID; s < splits; s += gl_SubgroupSize)
      most = max(most, partial(t, first + h, s).at[0]);
    most = subgroupMax(most);
    float sum = 0;
    for (uint s = gl_SubgroupInvocationID; s < splits; s += gl_SubgroupSize) {
      const float weight = weight_of(partial(t, first + h, s).at[0] - most);
      split_weight[h * kMaxAttentionSplits + s] = weight;
      sum += weight * partial(t, first + h, s).at[1];
    }
    sum = subgroupAdd(sum) + (sink == kNone ? 0 : weight_of(sink - most));
    for (uint s = gl_SubgroupInvocationID; s < splits; s += gl_SubgroupSize)
      split_weight[h * kMaxAttentionSplits + s] /= sum;
  }
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < count * kValueWidth; i += GROUP) {
    const uint h = i / kValueWidth, k = i % kValueWidth;
    float y = 0;
    for (uint s = 0; s < splits; ++s)
      y = fma(split_weight[h * kMaxAttentionSplits + s], partial(t, first + h, s).at[2 + k], y);
    p.y.at[(t * kHeads + first) * kValueWidth + i] = y;
  }
  barrier();
}

void main() {
  StepState_address step = step_of(p.step);
  const uint t = gl_WorkGroupID.x / kKvHeads, kv_head = gl_WorkGroupID.x % kKvHeads, split = gl_WorkGroupID.y;
  if (t >= live_rows(step, kRowsTokens)) return;
  const StepRow row = step.state.row[t];
  const uint end = row.position + 1, begin = p.window != 0 && p.window < end ? end - p.window : 0;
  const uint first_page = begin / kPageTokens, pages = (end + kPageTokens - 1) / kPageTokens - first_page;
  const uint each = (pages + kMaxAttentionSplits - 1) / kMaxAttentionSplits, splits = (pages + each - 1) / each;
  if (split >= splits) return;
  const uint from = (first_page + split * each) * kPageTokens;
  const Part part = Part(row.sequence, max(begin, from), min(end, from + each * kPageTokens), splits);
  for (uint h = 0; h < kSharing; h += kTaken)
    attend(step, part, t, kv_head, kv_head * kSharing + h, min(kSharing - h, kTaken), split);
  if (splits == 1 || !is_last_group(p.counters, gl_WorkGroupID.x, splits)) return;
  for (uint h = 0; h < kSharing; h += kMerged)
    merge_splits(splits, t, kv_head * kSharing + h, min(kSharing - h, kMerged));
}
