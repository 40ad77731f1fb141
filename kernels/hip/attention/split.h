// What attention_split, attention_heads and their forms for lone rows share: a group attends to a range of
// the positions of a token and KV head, and the last group merges the ranges. The page of attention_split.hip
// says how. The kernel defines kLone (range.h).
#pragma once
#include "kernels/hip/attention/cache_chunk.h"
#include "kernels/hip/attention/range.h"
#include "kernels/hip/attention/team.h"
#include "kernels/hip/group_ticket.h"
#include "kernels/hip/halves.h"
GLSL_BEGIN
#include "kernels/gpu/q8x16.h"
GLSL_END

// Waves that are to fit in a SIMD at once, each with 128 registers a lane. The shared memory of
// attention_heads leaves room for three on CDNA. The registers of a body of decode_stages are those of
// decode_stages.
#if defined(GRETA_EMULATED) || defined(GRETA_STAGE)
#define AT_LEAST_WAVES(cdna)
#elif defined(__GFX9__)
#define AT_LEAST_WAVES(cdna) __attribute__((amdgpu_waves_per_eu(cdna)))
#elif defined(__GFX12__) && !defined(__gfx1250__)
#define AT_LEAST_WAVES(cdna) __attribute__((amdgpu_waves_per_eu(12)))
#else
#define AT_LEAST_WAVES(cdna) __attribute__((amdgpu_waves_per_eu(8)))
#endif

namespace {

// A lane holds so many chunks of sums, of keys and of values. They are its chunks of several heads and
// positions, fewer where it has several chunks of a head.
constexpr uint kHeldChunks = 4;
constexpr uint kWaves = GROUP / kWave;
constexpr float kNone = -3e38f;     // below every score
constexpr uint kMergedHeads = 8;    // heads whose ranges the last group merges at once
constexpr uint kLoadsAtOnce = 8;    // loads of partial results that are under way together

constexpr uint kFours = GROUP * kChunk / 4;
using SplitWeights = float[kMaxSplits];

SHARED float wave_maximum[kHeldChunks][kWaves];  // the largest score of a head
SHARED float wave_weight[kHeldChunks][kWaves];   // the sum of weights, against the group's maximum
SHARED_ARRAY(vec4, fours, kFours, 0);  // queries; later a chunk of each lane's sums
SHARED_ARRAY(SplitWeights, split_weight, kMergedHeads, END_OF(fours));

// What a lane has of some query heads: an online softmax, and its chunks of the sums of weighted values.
template <uint kLaneChunks>
struct Heads {
  static constexpr uint kCount = kHeldChunks / kLaneChunks;
  float maximum[kCount], weight[kCount];
  vec2 sums[kHeldChunks][kChunk / 2];  // [head][chunk of the lane]
};

// Keys or values of the KV head in the cache.
struct Cache {
  const GLOBAL byte* pool;
  uint page_bytes, type;
  uint head_bytes;  // from one position to the next
  uint chunks;      // of a head
};

// Where a row of positions lies, one for each team; it is in one page. For positions outside of the range it
// is the nearest one in it.
struct Row {
  uint page, slot;  // of the first position
  uint further;     // of this lane's position, from the first
};

// A round over the positions: rows of positions, one for each team, whose keys and values are loaded together
// where the kernel knows their type.
template <uint kLaneChunks_, uint kType_>
struct Round {
  static constexpr uint kLaneChunks = kLaneChunks_, kType = kType_;
  static constexpr uint kHeads = Heads<kLaneChunks>::kCount;
  static constexpr uint kRows = kType == kCacheAny ? 1 : kHeldChunks / kLaneChunks;
  static constexpr uint kRowsAtOnce = kRows == 1 ? 1 : 2;  // that are multiplied by queries loaded once
  Row rows[kRows];
  Chunk keys[kRows * kLaneChunks], values[kRows * kLaneChunks];  // [row][chunk of the lane]
  float scores[kHeads * kRows];                                  // [head][row], then their weights
};

}  // namespace

// The compiler moves no load across it.
DEVICE void keep_order() { asm volatile("" ::: "memory"); }

// The weight of a score that is `below` (negative or 0) under the maximum.
DEVICE float weight_of(float below) { return __builtin_amdgcn_exp2f(below * 1.44269504f); }

DEVICE float sink_of(const AttentionBlock& p, uint head) { return p.sinks ? p.sinks[head] : kNone; }

// The range, of which the compiler now knows nothing. What is made of its bounds stays within the loop that
// asks for it.
DEVICE Range opaque(Range range) {
#ifndef GRETA_EMULATED
  asm volatile("" : "+s"(range.begin), "+s"(range.end));
#endif
  return range;
}

// The largest score and the sum of weights of head h over all waves.
DEVICE float maximum_of(uint h) {
  float maximum = kNone;
  for (uint i = 0; i < kWaves; ++i) maximum = max(maximum, wave_maximum[h][i]);
  return maximum;
}
DEVICE float weight_of_head(uint h) {
  float weight = 0;
  for (uint i = 0; i < kWaves; ++i) weight += wave_weight[h][i];
  return weight;
}

// The result of a range for one head: {maximum, sum of weights}, and 16 bytes further its values. Those of a
// head follow each other; of lone rows, those of a range.
DEVICE GLOBAL float* partial(const AttentionBlock& p, const Range& range, uint head, uint split) {
  const uint64_t index = kLone ? uint64_t(range.first_range + split) * p.heads + head
                               : (uint64_t(range.t) * p.heads + head) * kMaxAttentionSplits + split;
  return (GLOBAL float*)(p.scratch + index * ((p.value_width + 4) * 4));
}

// The same for a range of the row's prefix. These results lie behind those of all groups.
DEVICE GLOBAL float* prefix_partial(const AttentionBlock& p, const PrefixResults& prefix, uint head,
                                    uint split) {
  const uint heads = p.heads / p.kv_heads, query = prefix.query + head % heads;
  const uint item = prefix.item + split * prefix.blocks + query / kPrefixQueries;
  const uint64_t index = uint64_t(group_count_y()) * p.heads +
                         prefix_result(item, p.kv_heads, head / heads, query % kPrefixQueries);
  return (GLOBAL float*)(p.scratch + index * ((p.value_width + 4) * 4));
}

// Stores four of a token's values, from value `at` on, in y and in the form of the next matmul. All lanes of
// a wave call it, four neighbours with 16 values. A lane whose values another one has is not `first`.
DEVICE void store_y(const AttentionBlock& p, bool first, uint t, uint at, vec4 y) {
  const uint width = p.heads * p.value_width;
  if (first) ((GLOBAL vec4*)(p.y + t * width))[at / 4] = y;
  if (kLone && first) store_halves(p.halves, t * width + at, y);
  if (!p.rounded) return;
  store_q8x16(uint64_t(p.rounded) + uint64_t(t) * q8x16_row_bytes(width), width, at / 4, y, dot(y, y));
}

DEVICE uint clamp_position(uint position, uint first, uint last) { return min(max(position, first), last); }

// The first position of the row that has `position`, or of the nearest row in the range.
DEVICE uint row_start(const Range& range, const Team& team, uint position) {
  const uint last = range.end - 1;
  return clamp_position(position, range.begin - range.begin % team.count, last - last % team.count);
}

DEVICE uint page_of_row(const AttentionBlock& p, const Range& range, const Team& team, uint position) {
  return page_of(step_of(p.step), range.sequence, row_start(range, team, position));
}

DEVICE Row row_of(const Range& range, const Team& team, uint first, uint page) {
  const uint start = row_start(range, team, first);
  const uint position = clamp_position(first + team.index, range.begin, range.end - 1);
  return {page, range.kv_head * kPageTokens + start % kPageTokens, (position - start) % kPageTokens};
}

// Where a chunk of this lane lies in a row.
template <uint kType>
DEVICE Place place_of(const Cache& cache, const Row& row, uint chunk) {
  return {cache.pool + uint64_t(row.page) * cache.page_bytes + row.slot * cache.head_bytes,
          row.further * cache.head_bytes + chunk_at(kType == kCacheAny ? cache.type : kType, chunk), chunk};
}

// The index of a lane's chunk in its head. Lanes that have none repeat the last chunk.
DEVICE uint chunk_of(const Cache& cache, const Team& team, uint c) {
  return min(team.lane + c * team.lanes, cache.chunks - 1);
}

// Whether any lane of a team has a c-th chunk.
DEVICE bool has_chunk(const Cache& cache, const Team& team, uint c) {
  return c == 0 || c * team.lanes < cache.chunks;
}

// Loads this lane's chunks in all rows.
template <class R>
DEVICE void load_chunks(const Cache& cache, const Team& team, const R& round,
                        Chunk (&chunks)[R::kRows * R::kLaneChunks]) {
#pragma unroll
  for (uint i = 0; i < R::kRows * R::kLaneChunks; ++i)
    if (const uint c = i % R::kLaneChunks; has_chunk(cache, team, c))
      chunks[i] = load_chunk<R::kType>(
          place_of<R::kType>(cache, round.rows[i / R::kLaneChunks], chunk_of(cache, team, c)));
}

// Adds this lane's part of q[h] . key to the scores of kRowsAtOnce rows from `from` on. query(h, i) are
// values 4 i .. of head h.
template <class R, class Query>
DEVICE void multiply_rows(const Cache& cache, const Team& team, R& round, uint from, Query query) {
#pragma unroll
  for (uint c = 0; c < R::kLaneChunks; ++c) {
    if (!has_chunk(cache, team, c)) break;
    const uint chunk = chunk_of(cache, team, c);
    const bool own = team.lane + c * team.lanes < cache.chunks;
    ChunkValues key[R::kRowsAtOnce];
#pragma unroll
    for (uint b = 0; b < R::kRowsAtOnce; ++b)
      key[b] = decode_chunk<R::kType>(cache.type, round.keys[(from + b) * R::kLaneChunks + c],
                                      place_of<R::kType>(cache, round.rows[from + b], chunk));
    keep_order();
#pragma unroll
    for (uint h = 0; h < R::kHeads; ++h) {
      const vec4 low = query(h, chunk * 2), high = query(h, chunk * 2 + 1);
      const vec2 q[] = {low.xy, low.zw, high.xy, high.zw};
#pragma unroll
      for (uint b = 0; b < R::kRowsAtOnce; ++b) {
        vec2 sum = {0, 0};
#pragma unroll
        for (uint j = 0; j < kChunk / 2; ++j) sum = __builtin_elementwise_fma(q[j], key[b].pairs[j], sum);
        round.scores[h * R::kRows + from + b] += own ? sum.x + sum.y : 0;
      }
    }
  }
}

// heads.sums[h] += weights[h][row] * value
template <class R>
DEVICE void add_values(const Cache& cache, const Team& team, const R& round, Heads<R::kLaneChunks>& heads) {
#pragma unroll
  for (uint i = 0; i < R::kRows * R::kLaneChunks; ++i) {
    const uint c = i % R::kLaneChunks, b = i / R::kLaneChunks;
    if (!has_chunk(cache, team, c)) continue;
    const ChunkValues value = decode_chunk<R::kType>(
        cache.type, round.values[i], place_of<R::kType>(cache, round.rows[b], chunk_of(cache, team, c)));
#pragma unroll
    for (uint h = 0; h < R::kHeads; ++h) {
      const float weight = round.scores[h * R::kRows + b];
      auto& sums = heads.sums[h * R::kLaneChunks + c];
#pragma unroll
      for (uint j = 0; j < kChunk / 2; ++j)
        sums[j] = __builtin_elementwise_fma(vec2{weight, weight}, value.pairs[j], sums[j]);
    }
    keep_order();
  }
}

// What head h has summed, against a maximum that is as large or larger.
template <uint kLaneChunks>
DEVICE void set_maximum(Heads<kLaneChunks>& heads, uint h, float maximum) {
  const float rescale = weight_of(heads.maximum[h] - maximum);
  heads.maximum[h] = maximum;
  heads.weight[h] *= rescale;
#pragma unroll
  for (uint i = 0; i < kLaneChunks; ++i)
#pragma unroll
    for (uint j = 0; j < kChunk / 2; ++j) heads.sums[h * kLaneChunks + i][j] *= rescale;
}

// Scores of the round from position `first` on become weights against the new maximum. Those of positions
// outside of the range become 0.
template <class R>
DEVICE void weigh_scores(const AttentionBlock& p, const Range& range, const Team& team, uint first, R& round,
                         Heads<R::kLaneChunks>& heads) {
#pragma unroll
  for (float& score : round.scores) score *= p.scale;
  if (p.softcap > 0)
#pragma unroll
    for (float& score : round.scores) score = softcap_f32(p.softcap, score);
#pragma unroll
  for (uint b = 0; b < R::kRows; ++b) {
    const bool live = first + b * team.count + team.index - range.begin < range.end - range.begin;
#pragma unroll
    for (uint h = 0; h < R::kHeads; ++h)
      round.scores[h * R::kRows + b] = live ? round.scores[h * R::kRows + b] : -__builtin_inff();
  }
#pragma unroll
  for (uint h = 0; h < R::kHeads; ++h) {
    float maximum = heads.maximum[h];
#pragma unroll
    for (uint b = 0; b < R::kRows; ++b) maximum = max(maximum, round.scores[h * R::kRows + b]);
    set_maximum(heads, h, maximum);
#pragma unroll
    for (uint b = 0; b < R::kRows; ++b) {
      float& score = round.scores[h * R::kRows + b];
      score = weight_of(score - maximum);
      heads.weight[h] += score;
    }
  }
}

template <uint kLaneChunks>
DEVICE void begin_heads(Heads<kLaneChunks>& heads) {
#pragma unroll
  for (uint i = 0; i < kHeldChunks; ++i)
#pragma unroll
    for (uint j = 0; j < kChunk / 2; ++j) heads.sums[i][j] = vec2{0, 0};
#pragma unroll
  for (uint h = 0; h < Heads<kLaneChunks>::kCount; ++h) heads.maximum[h] = kNone, heads.weight[h] = 0;
}

// Sums up the positions of the range for the heads.
template <class R, class Query>
DEVICE void sum_range(const AttentionBlock& p, const Range& range, const Team& team, Query query,
                      Heads<R::kLaneChunks>& heads) {
  const Cache keys = {p.keys, p.key_page_bytes, p.key_type, cache_head_bytes(p.key_type, p.key_width),
                      p.key_width / kChunk};
  const Cache values = {p.values, p.value_page_bytes, p.value_type,
                        cache_head_bytes(p.value_type, p.value_stride), p.value_width / kChunk};
  begin_heads(heads);
  uint s = range.begin / kPageTokens * kPageTokens, pages[R::kRows];
#pragma unroll
  for (uint b = 0; b < R::kRows; ++b) pages[b] = page_of_row(p, range, team, s + b * team.count);
#pragma unroll 1
  for (; s < range.end; s += R::kRows * team.count) {
    R round = {};
#pragma unroll
    for (uint b = 0; b < R::kRows; ++b) round.rows[b] = row_of(range, team, s + b * team.count, pages[b]);
    load_chunks(keys, team, round, round.keys);
    load_chunks(values, team, round, round.values);
    // The pages of the next round are loaded during this one.
#pragma unroll
    for (uint b = 0; b < R::kRows; ++b)
      pages[b] = page_of_row(p, range, team, s + (R::kRows + b) * team.count);
#pragma unroll
    for (uint from = 0; from < R::kRows; from += R::kRowsAtOnce)
      multiply_rows(keys, team, round, from, query);
    team_sums(round.scores, team.lanes);
    weigh_scores(p, range, team, s, round, heads);
    add_values(values, team, round, heads);
  }
}

// Leaves the maximum and the sum of weights of each head in shared memory, and turns the sums of all teams
// into sums against that maximum.
template <uint kLaneChunks>
DEVICE void agree_on_maxima(const Team& team, Heads<kLaneChunks>& heads) {
#pragma unroll
  for (uint h = 0; h < Heads<kLaneChunks>::kCount; ++h) {
    const float maximum = wave_max(heads.maximum[h]);
    if (lane() == 0) wave_maximum[h][wave_index()] = maximum;
  }
  group_barrier();
#pragma unroll
  for (uint h = 0; h < Heads<kLaneChunks>::kCount; ++h) {
    set_maximum(heads, h, maximum_of(h));
    const float weight = wave_sum(team.lane == 0 ? heads.weight[h] : 0);
    if (lane() == 0) wave_weight[h][wave_index()] = weight;
  }
}

// Stores values 4 i .. of head first + h, whose weighted values add up to `sum`: the result, or that of this
// range where there are several. All lanes of a wave call it; `stores` is as in store_y().
DEVICE void store_head(const AttentionBlock& p, const Range& range, bool stores, uint head, uint h, uint i,
                       vec4 sum) {
  const float most = maximum_of(h), weight = weight_of_head(h);
  if (range.splits > 1) {
    if (!stores) return;
    const auto to = (GLOBAL vec4*)partial(p, range, head, range.split - range.prefix_ranges);
    to[1 + i] = sum;
    if (i == 0) to[0] = vec4{most, weight, 0, 0};
    return;
  }
  const float sink = sink_of(p, head), maximum = max(most, sink), rescale = weight_of(most - maximum);
  const float all = weight * rescale + (sink == kNone ? 0 : weight_of(sink - maximum));
  store_y(p, stores, range.t, head * p.value_width + i * 4, sum * (rescale / all));
}

// Adds up the teams, in their order, and stores the results of heads first .. first + count - 1. A thread
// makes four values of a chunk; threads for which there are none repeat those of others.
template <uint kLaneChunks>
DEVICE void merge_teams(const AttentionBlock& p, const Range& range, const Team& team,
                        Heads<kLaneChunks>& heads, uint first, uint count) {
  agree_on_maxima(team, heads);
#pragma unroll
  for (uint held = 0; held < kHeldChunks; ++held) {
    const uint h = held / kLaneChunks, start = held % kLaneChunks * team.lanes;
    const auto& sums = heads.sums[held];
    group_barrier();
    fours[team.thread * 2] = vec4{sums[0].x, sums[0].y, sums[1].x, sums[1].y};
    fours[team.thread * 2 + 1] = vec4{sums[2].x, sums[2].y, sums[3].x, sums[3].y};
    group_barrier();
    if (h >= count || start * kChunk >= p.value_width) continue;
    const uint all = min(2 * team.lanes, p.value_width / 4 - start * 2);  // fours of these chunks
    if (wave_index() * kWave >= all) continue;
    const uint own = team.thread < all ? team.thread : team.thread % min(all, 4);
    vec4 sum = {0, 0, 0, 0};
    for (uint from = own; from < 2 * GROUP; from += 2 * team.lanes) sum += fours[from];
    store_head(p, range, team.thread < all, first + h, h, start * 2 + own, sum);
  }
  group_barrier();
}

// Chunks of the widest head.
DEVICE uint chunks_of(const AttentionBlock& p) { return max(p.key_width, p.value_width) / kChunk; }

template <uint kLaneChunks, class Args, class Stage, class Query>
DEVICE void attend(Args args, Range range, Stage stage, Query query) {
#pragma unroll 1
  for (uint h = 0;; h += Heads<kLaneChunks>::kCount) {
    const AttentionBlock p = args();
    const uint per_kv = p.heads / p.kv_heads;
    if (h >= per_kv) return;
    range = opaque(range);
    const uint first = range.kv_head * per_kv + h, count = min(per_kv - h, Heads<kLaneChunks>::kCount);
    stage(p, first, count);
    const Team team = team_for(chunks_of(p));
    Heads<kLaneChunks> heads;
    const bool same = p.key_type == p.value_type;
    if (same && p.key_type == kCacheF16)
      sum_range<Round<kLaneChunks, kCacheF16>>(p, range, team, query, heads);
    else if (same && p.key_type == kCacheQ8)
      sum_range<Round<kLaneChunks, kCacheQ8>>(p, range, team, query, heads);
    else
      sum_range<Round<kLaneChunks, kCacheAny>>(p, range, team, query, heads);
    merge_teams(args(), range, team, heads, first, count);
  }
}

// Merges the ranges of heads first .. first + count - 1; the last group calls it.
DEVICE void merge_splits(const AttentionBlock& p, const Range& range, uint first, uint count) {
  const uint splits = range.splits;
  PrefixResults prefix = {};
  if (kBehind && range.prefix_ranges)
    prefix = find_results(cut_prefixes(step_of(p.step), p.heads, p.kv_heads), range.t);
  const auto part_of = [&](uint h, uint s) {
    return kBehind && s < range.prefix_ranges ? prefix_partial(p, prefix, first + h, s)
                                              : partial(p, range, first + h, s - range.prefix_ranges);
  };
  for (uint h = wave_index(); h < count; h += kWaves) {
    const float sink = sink_of(p, first + h);
    float maximum = sink;
    for (uint s = lane(); s < splits; s += kWave) maximum = max(maximum, part_of(h, s)[0]);
    maximum = wave_max(maximum);
    float sum = 0;
    for (uint s = lane(); s < splits; s += kWave) {
      const auto part = part_of(h, s);
      split_weight[h][s] = weight_of(part[0] - maximum);
      sum += split_weight[h][s] * part[1];
    }
    sum = wave_sum(sum) + (sink == kNone ? 0 : weight_of(sink - maximum));
    for (uint s = lane(); s < splits; s += kWave) split_weight[h][s] /= sum;
  }
  group_barrier();
  // All lanes go through the loop equally often, for store_y(). Those that are left over repeat the first.
  const uint end = count * p.value_width, stride = (kLone ? p.heads : 1) * (p.value_width / 4 + 1);
  for (uint from = 0; from < end; from += GROUP * 4) {
    const bool stores = from + thread_x() * 4 < end;
    const uint i = stores ? from + thread_x() * 4 : thread_x() * 4 % min(16, end), h = i / p.value_width;
    const auto parts = (const GLOBAL vec4*)partial(p, range, first + h, 0) + 1 + i % p.value_width / 4;
    const auto values_of = [&](uint s) {
      if constexpr (!kBehind) return parts[s * stride];
      return ((const GLOBAL vec4*)part_of(h, s))[1 + i % p.value_width / 4];
    };
    vec4 y = {0, 0, 0, 0};
    for (uint s = 0; s < splits; s += kLoadsAtOnce) {
      vec4 values[kLoadsAtOnce];
#pragma unroll
      for (uint j = 0; j < kLoadsAtOnce; ++j) values[j] = values_of(min(s + j, splits - 1));
#pragma unroll
      for (uint j = 0; j < kLoadsAtOnce; ++j)
        if (s + j < splits) y += values[j] * split_weight[h][s + j];
    }
    store_y(p, stores, range.t, first * p.value_width + i, y);
  }
  group_barrier();
}

// Attends to the range, and merges all ranges of the token where this group is the last. args() loads the
// block anew, so that what is made of it takes no scalar registers elsewhere (reloaded_block). stage(args(),
// first, count) makes query heads first .. first + count - 1 ready; then query(h, i) are values 4 i .. of
// head first + h.
template <class Args, class Stage, class Query>
DEVICE void attend_range(Args args, const Range& range, Stage stage, Query query) {
  const uint chunks = chunks_of(args());
  if (chunks <= kWave)
    attend<1>(args, range, stage, query);
  else if (chunks <= 2 * kWave)
    attend<2>(args, range, stage, query);
  else if constexpr (kWave == 32)
    attend<4>(args, range, stage, query);
  const uint groups = range.splits - range.prefix_ranges;
  if (range.splits == 1 || !is_last_group(args().counters, counter_of(args(), range), groups)) return;
  const AttentionBlock again = args();
  const uint per_kv = again.heads / again.kv_heads;
  for (uint h = 0; h < per_kv; h += kMergedHeads)
    merge_splits(again, range, range.kv_head * per_kv + h, min(per_kv - h, kMergedHeads));
}
