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
#include "kernels/abi/attention_tile.h"
#include "kernels/hip/attention/cache_chunk.h"
#include "kernels/hip/attention/tile_lanes.h"
#include "kernels/hip/attention/tile_queries.h"
#include "kernels/hip/halves.h"

namespace {
constexpr uint kTile = kAttentionTile;
constexpr uint kFragments = kTile / kFragmentColumns;  // of positions
constexpr uint kMatrices = kFragmentColumns / 16;      // of scores of a fragment
constexpr uint kScores = kMatrices * kLayout.results;  // that a lane has of a fragment
static_assert(kScores == 8);
constexpr float kNone = -3e38f;        // of a hidden position: its weight is 0 even against kMinMaximum
constexpr float kMinMaximum = -1e30f;  // the first `maximum`
constexpr float kSlack = 8;            // weights are at most 2^8

// Keys [kTile][kWidth], behind them values [kWidth][kTile], in words of 8 float16. Scores that waves exchange
// lie where the values will be.
SHARED uvec4 tile[attention_fixed_bytes(kWidest) / 16];

// Heads of up to `width` values; keys and values of one type, or with kCacheAny of any, and only then scores
// may have a softcap. A lane has kRun neighbouring columns of y for each of its results: column n % kRun of
// them lies in matrix n.
template <uint width, uint type>
struct Heads {
  static constexpr uint kType = type;
  // Whether chunks wait in registers while others are multiplied. Wide heads have no registers left.
  static constexpr bool kAhead = type != kCacheAny && width <= 128;
  static constexpr uint kUnroll = kAhead || type == kCacheF16 ? 16 : 1;  // chunks that are decoded together
  static constexpr uint kRun = width < 128 * kSharing ? width / 16 / kSharing : 8, kChunks = width / kChunk;
  static constexpr uint kKeyFragments = width / kFragmentColumns / kSharing;
  static constexpr uint kValueMatrices = width / 16 / kSharing;
  // Chunks of keys that a thread brings, and of values: two neighbouring positions together.
  static constexpr uint kKeysEach = kTile * kChunks / GROUP;
  static constexpr uint kValuesEach = (kTile / 2 * kChunks + GROUP - 1) / GROUP * 2;
  static_assert(kKeysEach * GROUP == kTile * kChunks && kValueMatrices % kRun == 0);

  Fragment queries[kKeyFragments];
  Chunk keys[kKeysEach], values[kValuesEach];
  float scores[kFragments][kScores];
  Sums sums[kValueMatrices];
  float maximum, total;  // of the lane's query; total: of the weights that the lane has made
};

// Words of a row lie in such an order that eight neighbouring rows have the same word in different banks. On
// CDNA rows 0 to 3 and 12 to 15 of 16 have a word in other banks than rows 4 to 11 have the next one: lanes
// with these are served together (tests/hip/lds_trace.cpp).
template <class T>
DEVICE uint key_place(uint row, uint word) {
  const uint half = kWave == 64 && T::kChunks % 16 == 0 ? (row ^ row * 2) & 8 : 0;
  return row * T::kChunks + (word ^ (row % 8 + half));
}
template <class T>
DEVICE uint value_place(uint row, uint word) {
  return kTile * T::kChunks + row * (kTile / 8) + (word ^ row / 2 % 4);
}

// The row that has the keys of a position of the tile.
DEVICE uint key_row(uint position) {
  const uint score = position % 8, part = position % kFragmentColumns / 8;
  return position / kFragmentColumns * kFragmentColumns + score / kLayout.results * 16 +
         score % kLayout.results * kLayout.result_step + part * kLayout.result_part_step;
}

// The row that has a column of the values.
template <class T>
DEVICE uint value_row(uint column) {
  return (column / (16 * T::kRun) * T::kRun + column % T::kRun) * 16 + column / T::kRun % 16;
}

// Saturated halves, and NaN where a value is not finite: 0 times it is NaN.
DEVICE uvec4 halves_of(ChunkValues values) {
  uvec4 words;
#pragma unroll
  for (uint i = 0; i < 4; ++i) {
    const vec2 pair = values.pairs[i];
    const vec2 range = __builtin_elementwise_min(__builtin_elementwise_max(pair, vec2(-65504)), vec2(65504));
    const vec2 saturated = {fma(pair.x, 0.f, range.x), fma(pair.y, 0.f, range.y)};
    words[i] = __builtin_bit_cast(uint, __builtin_convertvector(saturated, f16vec2));
  }
  return words;
}

// A chunk as it lies where the kernel knows its type, else as float16.
template <class T>
DEVICE Chunk bring(uint type, const Place& place) {
  if constexpr (T::kType == kCacheAny) return halves_of(load_values(type, place));
  return load_chunk<T::kType>(place);
}
template <class T>
DEVICE uvec4 halves_of(Chunk chunk) {
  if constexpr (T::kType == kCacheQ8) return halves_of(decode_q8(chunk));
  return chunk;
}

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

// A tile of the cache: the KV head's keys and values at its first position.
struct Cached {
  const GLOBAL byte *keys, *values;
  uint live;  // positions from here on have no keys and no values
};

DEVICE Cached find_tile(const AttentionBlock& p, const Queries& q, const Run& run, uint s) {
  const uint64_t page = page_of(q.step, run.sequence, s);
  const uint at = q.kv_head * kPageTokens + s % kPageTokens;
  return {p.keys + page * p.key_page_bytes + at * cache_head_bytes(p.key_type, p.key_width),
          p.values + page * p.value_page_bytes + at * cache_head_bytes(p.value_type, p.value_stride),
          run.until - s};
}

// Chunk i of a thread's keys; zeros where there is none.
template <class T>
DEVICE Chunk load_key(const AttentionBlock& p, const Cached& cached, uint i) {
  const uint type = T::kType == kCacheAny ? p.key_type : T::kType;
  const uint at = i * GROUP + thread_x(), s = at / T::kChunks, chunk = at % T::kChunks;
  if (s >= cached.live || chunk * kChunk >= p.key_width) return Chunk{};
  const uint from = s * cache_head_bytes(type, p.key_width);
  return bring<T>(type, {cached.keys, from + chunk_at(type, chunk), chunk});
}

// Chunk i of a thread's values is chunk `chunk` of position `s`. On CDNA 32 lanes have eight neighbouring
// chunks of four pairs of positions: once transposed, these lie in different banks.
struct ValueAt {
  uint s, chunk;
};
template <class T>
DEVICE ValueAt value_at(uint i) {
  const uint at = i / 2 * GROUP + thread_x(), eights = T::kChunks / 8;
  if constexpr (kWave == 32) return {at / T::kChunks * 2 + i % 2, at % T::kChunks};
  const uint pair = at / 32 / eights * 4 + at / 8 % 4;
  return {pair * 2 + i % 2, at / 32 % eights * 8 + at % 8};
}

template <class T>
DEVICE Chunk load_value(const AttentionBlock& p, const Cached& cached, uint i) {
  const uint type = T::kType == kCacheAny ? p.value_type : T::kType;
  const auto [s, chunk] = value_at<T>(i);
  if (s >= min(cached.live, kTile) || chunk * kChunk >= p.value_width) return Chunk{};
  const uint from = s * cache_head_bytes(type, p.value_stride);
  return bring<T>(type, {cached.values, from + chunk_at(type, chunk), chunk});
}

template <class T>
DEVICE void load_keys(T& t, const AttentionBlock& p, const Cached& cached) {
  if constexpr (T::kAhead)
#pragma unroll
    for (uint i = 0; i < T::kKeysEach; ++i) t.keys[i] = load_key<T>(p, cached, i);
}
template <class T>
DEVICE void load_values(T& t, const AttentionBlock& p, const Cached& cached) {
  if constexpr (T::kAhead)
#pragma unroll
    for (uint i = 0; i < T::kValuesEach; ++i) t.values[i] = load_value<T>(p, cached, i);
}

// Stores the keys of the tile, which load_keys() may have loaded.
template <class T>
DEVICE void store_keys(T& t, const AttentionBlock& p, const Cached& cached) {
#pragma unroll T::kUnroll
  for (uint i = 0; i < T::kKeysEach; ++i) {
    const uint at = i * GROUP + thread_x();
    Chunk key;
    if constexpr (T::kAhead) key = t.keys[i];
    else key = load_key<T>(p, cached, i);
    tile[key_place<T>(key_row(at / T::kChunks), at % T::kChunks)] = halves_of<T>(key);
  }
}

template <class T>
DEVICE void store_values(T& t, const AttentionBlock& p, const Cached& cached) {
#pragma unroll T::kUnroll
  for (uint i = 0; i < T::kValuesEach; i += 2) {
    const auto [s, chunk] = value_at<T>(i);
    if (s >= kTile) continue;
    Chunk pair[2];
#pragma unroll
    for (uint j = 0; j < 2; ++j)
      if constexpr (T::kAhead) pair[j] = t.values[i + j];
      else pair[j] = load_value<T>(p, cached, i + j);
    const uvec4 even = halves_of<T>(pair[0]), odd = halves_of<T>(pair[1]);
#pragma unroll
    for (uint j = 0; j < kChunk; ++j) {
      const uint place = value_place<T>(value_row<T>(chunk * kChunk + j), s / 8);
      ((uint*)tile)[place * 4 + s / 2 % 4] =
          pick_bytes(even[j / 2], odd[j / 2], j % 2 ? 0x07060302 : 0x05040100);
    }
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
  Cached now = find_tile(p, q, run, run.from);
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
    weigh(t, p, run, s, whole && s >= run.seen_from && next <= run.seen_until);
    store_values(t, p, now);
    group_barrier();  // all waves have multiplied the keys
    if (next < run.until) {
      now = find_tile(p, q, run, next);
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
