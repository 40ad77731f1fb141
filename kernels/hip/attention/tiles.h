// Attention of many tokens with matrix instructions (matrix.h). Queries, keys, weights and values are
// float16, sums are float32.
//   y[t][h] = softmax over s of (scale * q[t][h] . k[s]) times v[s]
//   grid    (blocks of kQueries queries * KV heads). A query is a token and one of the query heads of a KV
//           head
//   group   GROUP threads. kSharing waves have the same 16 queries. The group goes through the cache in tiles
//           of kAttentionTile positions that all its queries share:
//             scores = keys . queries,   weights = exp2(scores - maximum),   sums = sums + values . weights
//   shared  128 bytes for each value of the widest head: keys [positions][columns], values transposed
//   moves   keys and values of all positions once for each group; queries once; y, and y as float16 where it
//           is wanted
// Matrices are transposed: a query is a column, which is a lane's in all results (matrix_layouts.h). So a
// lane has the maximum, the sum of weights and the results of one query. Keys lie in such an order that a
// lane's 8 scores of a fragment are of 8 neighbouring positions. These are a word of the fragment of weights
// as it is: weights go through no memory. Only on gfx11 a lane needs those of two lanes.
//
// Maxima need not be exact: that of a query rises only where a score is above it by more than kSlack, which
// is rare after the first tile, and only then the sums are scaled. Each query is judged by itself, so that
// its bits do not depend on its neighbours. The argument block is AttentionBlock in kernels/abi/ops.h.
//
// The kernel defines kQueries, kWidest, which is the most values of a head, and kSharing, 1 or 2. Where waves
// share queries, each multiplies a share of the keys' columns and sums a share of the values' columns. They
// add up their scores, and both weigh all positions.
#pragma once
#include "kernels/hip/attention/tile_cache.h"
#include "kernels/hip/halves.h"

namespace {
constexpr uint kFragments = kTile / kFragmentColumns;  // of positions
constexpr uint kMatrices = kFragmentColumns / 16;      // of scores of a fragment
constexpr uint kScores = kMatrices * kLayout.results;  // that a lane has of a fragment
static_assert(kScores == 8);
constexpr float kNone = -3e38f;        // of a hidden position: its weight is 0 even against kMinMaximum
constexpr float kMinMaximum = -1e30f;  // the first `maximum`
constexpr float kSlack = 8;            // weights are at most 2^8

// Heads of up to `width` values; keys and values of one type, or with kCacheAny of any, and only then scores
// may have a softcap. A lane has kRun neighbouring columns of y for each of its results: column n % kRun of
// them lies in matrix n.
template <uint width, uint type>
struct Heads {
  static constexpr uint kType = type;
  // Whether chunks wait in registers while others are multiplied. Wide heads have no registers left.
  static constexpr bool kAhead = type != kCacheAny && width <= 128;
  // Whether the page of the next tile is looked up before this one is weighed. Other kernels have no scalar
  // registers left for it.
  static constexpr bool kPageAhead = kAhead || type == kCacheF16;
  static constexpr uint kUnroll = kAhead || type == kCacheF16 ? 16 : 1;  // chunks that are decoded together
  static constexpr uint kRun = width < 128 * kSharing ? width / 16 / kSharing : 8, kChunks = width / kChunk;
  static constexpr uint kKeyFragments = width / kFragmentColumns / kSharing;
  static constexpr uint kValueMatrices = width / 16 / kSharing;
  // Chunks of keys that a thread brings, and of values: two neighbouring positions together.
  static constexpr uint kKeysEach = kTile * kChunks / GROUP;
  static constexpr uint kValuesEach = (kTile / 2 * kChunks + GROUP - 1) / GROUP * 2;
  static constexpr bool kValuesFit = kValuesEach / 2 * GROUP == kTile / 2 * kChunks;  // all threads have some
  static_assert(kKeysEach * GROUP == kTile * kChunks && kValueMatrices % kRun == 0);

  Fragment queries[kKeyFragments];
  Chunk keys[kKeysEach], values[kValuesEach];
  float scores[kFragments][kScores];
  Sums sums[kValueMatrices];
  float maximum, total;  // of the lane's query; total: of the weights that the lane has made
};

// Loads the queries, scaled for exp2 and rounded once. Columns behind key_width are 0.
template <class T>
DEVICE void load_queries(T& t, const AttentionBlock& p, const Queries& queries) {
  const float scale = T::kType == kCacheAny && p.softcap > 0 ? p.scale : p.scale * kLog2e;
  const uint row = min(queries.token, queries.end - 1) * p.heads + queries.head;
  const auto q = (const GLOBAL vec4*)p.q + uint64_t(row) * (p.key_width / 4);
#pragma unroll
  for (uint i = 0; i < T::kKeyFragments; ++i)
#pragma unroll
    for (uint k = 0; k < kFragmentWords; ++k) {
      const uint word = (queries.share * T::kKeyFragments + i) * (kFragmentColumns / 8) + first_word() + k;
      vec4 low = vec4(0), high = vec4(0);
      if (word * 8 < p.key_width) low = scale * q[word * 2], high = scale * q[word * 2 + 1];
      t.queries[i].words[k] = halves_of(ChunkValues{{low.xy, low.zw, high.xy, high.zw}});
    }
}

// Makes the scores of the tile, over the wave's share of columns.
template <class T>
DEVICE void score(T& t, uint share) {
  Sums sums[kFragments * kMatrices];
#pragma unroll
  for (Sums& sum : sums) sum = Sums{};
#pragma unroll
  for (uint i = 0; i < T::kKeyFragments; ++i) {
    const uint word = (share * T::kKeyFragments + i) * (kFragmentColumns / 8) + first_word();
    end_fours(i);
#pragma unroll
    for (uint m = 0; m < kFragments * kMatrices; ++m) {
      Fragment key;
#pragma unroll
      for (uint k = 0; k < kFragmentWords; ++k)
        key.words[k] = tile[key_place<T>(m * 16 + lane() % 16, word + k)];
      sums[m] = multiply(key, t.queries[i], sums[m]);
    }
  }
#pragma unroll
  for (uint f = 0; f < kFragments; ++f)
#pragma unroll
    for (uint i = 0; i < kScores; ++i)
      t.scores[f][i] = sums[f * kMatrices + i / kLayout.results][i % kLayout.results];
}

// Adds the scores of two waves with the same queries. All waves of the group do it together.
template <class T>
DEVICE void add_shares(T& t) {
  const auto given = (vec4*)&tile[kTile * T::kChunks];
  const auto at = [](uint wave, uint f, uint i) {
    return ((wave * kFragments + f) * 2 + i) * kWave + lane();
  };
#pragma unroll
  for (uint f = 0; f < kFragments; ++f)
#pragma unroll
    for (uint i = 0; i < 2; ++i)
      given[at(wave_index(), f, i)] =
          vec4(t.scores[f][4 * i], t.scores[f][4 * i + 1], t.scores[f][4 * i + 2], t.scores[f][4 * i + 3]);
  group_barrier();
#pragma unroll
  for (uint f = 0; f < kFragments; ++f)
#pragma unroll
    for (uint i = 0; i < 2; ++i) {
      const vec4 other = given[at(wave_index() ^ 1, f, i)];
#pragma unroll
      for (uint k = 0; k < 4; ++k) t.scores[f][4 * i + k] += other[k];
    }
  group_barrier();  // values replace them
}

// Calls take(score, position) for each score of the lane; the tile begins at position s.
template <class T, class Take>
DEVICE void for_each_score(T& t, uint s, const Take& take) {
#pragma unroll
  for (uint f = 0; f < kFragments; ++f)
#pragma unroll
    for (uint i = 0; i < kScores; ++i)
      take(t.scores[f][i], int(s + f * kFragmentColumns + lane() / 16 * 8 + i));
}

// Raises the maximum of each query that has a score far above it.
template <class T>
DEVICE void raise(T& t, float best) {
  for (uint mask = 16; mask < kWave; mask *= 2) best = max(best, shuffle_xor(best, mask));
  const float after = best > t.maximum + kSlack ? best : t.maximum;
  const float factor = exp2_f32(t.maximum - after);
  t.maximum = after;
  t.total *= factor;
#pragma unroll
  for (Sums& sum : t.sums) sum *= factor;
}

// Turns scores into weights.
template <class T>
DEVICE void weigh(T& t, const AttentionBlock& p, const Run& run, uint s, bool all_seen) {
  if (T::kType == kCacheAny && p.softcap > 0)
    for_each_score(t, s, [&](float& score, int) { score = kLog2e * softcap_f32(p.softcap, score); });
  if (!all_seen) {
    const int window = p.window == 0 ? 0x7fffffff : int(p.window);
    for_each_score(t, s, [&](float& score, int position) {
      if (position > run.position || run.position - position >= window) score = kNone;
    });
  }
  float best = kNone;
  for_each_score(t, s, [&](float score, int) { best = max(best, score); });
  if (wave_any(best > t.maximum + kSlack)) raise(t, best);
  for_each_score(t, s, [&](float& score, int) {
    score = exp2_f32(score - t.maximum);
    t.total += score;
  });
}

// A fragment of weights.
DEVICE Fragment weights_of(const float (&weights)[kScores]) {
  Fragment fragment;
  uvec4 own;
#pragma unroll
  for (uint i = 0; i < 4; ++i) own[i] = half_pair_of(weights[2 * i], weights[2 * i + 1]);
  if constexpr (kFragmentWords == 1) {
    fragment.words[0] = own;
  } else {
#pragma unroll
    for (uint i = 0; i < 4; ++i) {
      const uint other = other_row(own[i]);
      fragment.words[0][i] = lane() < 16 ? own[i] : other;
      fragment.words[kFragmentWords - 1][i] = lane() < 16 ? other : own[i];
    }
  }
  return fragment;
}

template <class T>
DEVICE void add_values(T& t, uint share) {
#pragma unroll
  for (uint f = 0; f < kFragments; ++f) {
    const Fragment weights = weights_of(t.scores[f]);
    const uint word = f * (kFragmentColumns / 8) + first_word();
    end_phase();
#pragma unroll
    for (uint n = 0; n < T::kValueMatrices; ++n) {
      end_fours(n);
      const uint row = (share * T::kValueMatrices + n) * 16 + lane() % 16;
      Fragment value;
#pragma unroll
      for (uint k = 0; k < kFragmentWords; ++k) value.words[k] = tile[value_place<T>(row, word + k)];
      t.sums[n] = multiply(value, weights, t.sums[n]);
    }
  }
}

// Attention of a run of tokens; `whole`: the group has no others.
template <class T>
DEVICE void attend(T& t, const AttentionBlock& p, const Queries& q, const Run& run, bool whole) {
  Cached now = find_tile(p, q, run, run.from, page_at(q, run, run.from));
  load_keys(t, p, now);
#pragma clang loop unroll(disable)
  for (uint s = run.from; s < run.until; s += kTile) {
    const uint next = s + kTile;
    store_keys(t, p, now);
    group_barrier();  // all waves have added the values before
    load_values(t, p, now);
    end_phase();
    score(t, q.share);
    end_phase();
    if constexpr (kSharing > 1) add_shares(t);
    const uint next_page = T::kPageAhead ? page_at(q, run, next) : 0;
    weigh(t, p, run, s, whole && s >= run.seen_from && next <= run.seen_until);
    store_values(t, p, now);
    group_barrier();  // all waves have multiplied the keys
    if (next < run.until) {
      now = find_tile(p, q, run, next, T::kPageAhead ? next_page : page_at(q, run, next));
      load_keys(t, p, now);
    }
    add_values(t, q.share);
  }
}

// Adds up the weights that the lanes of a query have made.
template <class T>
DEVICE void add_totals(T& t) {
  for (uint mask = 16; mask < kWave; mask *= 2) t.total += shuffle_xor(t.total, mask);
}

// Calls take(column, sums) for the lane's sums of four columns each, of `width`.
template <class T, class Take>
DEVICE void for_each_sum(T& t, const Queries& q, uint width, const Take& take) {
#pragma unroll
  for (uint n = 0; n < T::kValueMatrices; n += T::kRun)
#pragma unroll
    for (uint r = 0; r < kLayout.results; ++r) {
      const uint column =
          ((q.share * T::kValueMatrices + n) / T::kRun * 16 + kLayout.row_of_result(lane(), r)) * T::kRun;
      if (column >= width) continue;
#pragma unroll
      for (uint i = 0; i < T::kRun; i += 4) {
        const Sums* sums = &t.sums[n + i];
        take(column + i, vec4(sums[0][r], sums[1][r], sums[2][r], sums[3][r]));
      }
    }
}

// Stores y = sums / (total + the sink's weight).
template <class T>
DEVICE void store(T& t, const AttentionBlock& p, const Queries& q) {
  add_totals(t);
  if (q.token < q.begin || q.token >= q.end) return;
  float factor = 1;
  if (p.sinks) {
    const float sink = p.sinks[q.head] * kLog2e, after = max(t.maximum, sink);
    factor = exp2_f32(t.maximum - after);
    t.total = t.total * factor + exp2_f32(sink - after);
  }
  factor /= t.total;
  const uint from = (q.token * p.heads + q.head) * p.value_width;
  for_each_sum(t, q, p.value_width, [&](uint column, vec4 sums) {
    const vec4 y = factor * sums;
    ((GLOBAL vec4*)p.y)[(from + column) / 4] = y;
    store_halves(p.halves, from + column, y);
  });
}

// Loads the queries, and sets out without any position.
template <class T>
DEVICE void begin_sums(T& t, const AttentionBlock& p, const Queries& q) {
  load_queries(t, p, q);
  t.maximum = kMinMaximum;
  t.total = 0;
#pragma unroll
  for (Sums& sum : t.sums) sum = Sums{};
}

template <class T>
DEVICE void attend_group(T& t, const AttentionBlock& p) {
  Queries q = find_queries(p);
  if (!load_rows(q)) return;
  begin_sums(t, p, q);
#pragma clang loop unroll(disable)
  for (uint first = q.begin; first < q.end;) {
    const Run run = find_run(q, first, p.window);
    attend(t, p, q, run, first == q.first && run.end == q.end);
    first = run.end;
  }
  store(t, p, q);
}

// Calls group(t) with Heads<width, ..> for the types of the cache.
template <uint width, class Group>
DEVICE void with_heads(const AttentionBlock& p, const Group& group) {
  const uint type = p.key_type == p.value_type && p.softcap == 0 ? p.key_type : kCacheAny;
  if (type == kCacheF16) {
    Heads<width, kCacheF16> t;
    group(t);
  } else if (type == kCacheQ8) {
    Heads<width, kCacheQ8> t;
    group(t);
  } else {
    Heads<width, kCacheAny> t;
    group(t);
  }
}

template <uint width>
DEVICE void attend_heads(const AttentionBlock& p) {
  with_heads<width>(p, [&](auto& t) { attend_group(t, p); });
}
}  // namespace
