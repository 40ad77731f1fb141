// What attention_heads and attention_lone_heads do first: a group normalises and rotates the queries of its
// KV head. The group that takes the newest position makes its key and value too, and stores them in their
// page.
#pragma once
#include "kernels/hip/attention/split.h"
#include "kernels/hip/norm/heads.h"

SHARED_ARRAY(vec4, made, kMaxHeadsMade / 4, END_OF(split_weight));  // heads: queries, key, value
SHARED float squares_of_wave[kWaves];

// The factors of the norms over all heads of queries and over all heads of keys; negative where each head has
// its own.
struct Factors {
  float query, key;
};

// Half of the threads add up the squares of each, in the order of rope_heads, which has as many threads.
DEVICE Factors factors_of_token(const AttentionHeads& p, uint t) {
  const AttentionHeadsConstants& c = p.constants;
  if (c.norms != kNormsAllHeads) return {-1, -1};
  constexpr uint kEach = GROUP / 2;
  const bool of_queries = thread_x() < kEach;
  const uint width = c.head_width * (of_queries ? p.block.heads : p.block.kv_heads);
  const GLOBAL float* x = (of_queries ? p.block.q : p.block.k) + t * width;
  float sum = 0;
  for (uint i = thread_x() % kEach; i < width; i += kEach) sum += x[i] * x[i];
  sum = wave_sum(sum);
  if (lane() == 0) squares_of_wave[wave_index()] = sum;
  group_barrier();
  float queries = 0, keys = 0;
  for (uint i = 0; i < kWaves / 2; ++i) {
    queries += squares_of_wave[i];
    keys += squares_of_wave[kWaves / 2 + i];
  }
  return {norm_factor(queries, p.block.heads * c.head_width, c.epsilon),
          norm_factor(keys, p.block.kv_heads * c.head_width, c.epsilon)};
}

// Makes head `i` of `made`, of token t.
DEVICE void make_head_of_group(const AttentionHeads& p, uint i, uint t, uint position, uint kv_head,
                               Factors factors) {
  const AttentionHeadsBlock& b = p.block;
  const AttentionHeadsConstants& c = p.constants;
  const uint heads_per_kv = b.heads / b.kv_heads;
  const bool query = i<heads_per_kv, value = i> heads_per_kv;
  const uint first = (query ? kv_head * heads_per_kv + i : kv_head) * c.head_width;
  const GLOBAL float* x = query ? b.q : value ? b.v : b.k;
  x += t * (query ? b.heads : b.kv_heads) * c.head_width;
  const GLOBAL float* gain = query ? b.q_gain : value ? nullptr : b.k_gain;
  if (gain && c.norms == kNormsAllHeads) gain += first;
  const Rotation rotation = {b.table + uint64_t(position) * c.rope_width, value ? 0 : c.rope_width,
                             c.rope_halves != 0};
  make_head(x + first, gain, c.head_width, query ? factors.query : factors.key, c.epsilon, rotation,
            [&](uint at, float y) { made[(i * c.head_width + at) / 4][(i * c.head_width + at) % 4] = y; });
}

// Stores head `i` of `made` at `to` in its page.
DEVICE void store_in_page(GLOBAL byte* to, uint type, uint i, uint width) {
  const vec4* head = made + i * width / 4;
  if (type == kCacheQ8) {
    for (uint block = thread_x(); block < width / 32; block += GROUP) {
      float values[32];
      for (uint j = 0; j < 32; ++j) values[j] = head[block * 8 + j / 4][j % 4];
      store_q8_0(to + block * kQ8BlockBytes, values);
    }
    return;
  }
  for (uint at = thread_x(); at < width; at += GROUP) {
    const float value = head[at / 4][at % 4];
    if (type == kCacheF32)
      ((GLOBAL float*)to)[at] = value;
    else
      ((GLOBAL uint16_t*)to)[at] = f32_to_f16(value);
  }
}

// Makes the group's heads. All threads call it.
DEVICE void make_heads(const AttentionHeads& p, const Range& range) {
  const AttentionHeadsBlock& b = p.block;
  const AttentionHeadsConstants& c = p.constants;
  const Step step = step_of(b.step);
  const uint heads_per_kv = b.heads / b.kv_heads, count = heads_per_kv + (!range.newest ? 0 : b.v ? 2 : 1);
  const uint t = kLone ? range.t : 0;  // else there is one token
  const Factors factors = factors_of_token(p, t);
  for (uint i = wave_index(); i < count; i += kWaves)
    make_head_of_group(p, i, t, step->row[range.t].position, range.kv_head, factors);
  group_barrier();
  if (!range.newest) return;
  store_in_page(head_in_page(step, range.t, (GLOBAL byte*)b.keys, b.key_page_bytes, range.kv_head,
                             cache_head_bytes(c.key_type, c.head_width)),
                c.key_type, heads_per_kv, c.head_width);
  if (b.v)
    store_in_page(head_in_page(step, range.t, (GLOBAL byte*)b.values, b.value_page_bytes, range.kv_head,
                               cache_head_bytes(c.value_type, c.head_width)),
                  c.value_type, heads_per_kv + 1, c.head_width);
  // The group reads them afterwards, so they must be in memory and not in caches from before.
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  meet_threads(GROUP);
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
