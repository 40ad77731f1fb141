// The frame of the attention kernels. A worker takes the tokens of its groups in runs that share a
// sequence: a page of keys is turned to float32 with positions along the lanes and a page of values to
// float32 rows, once for all queries of the run; then each query takes the page: scores, an online
// softmax, weights times values. Every query takes its pages in order of position and by itself, so
// the bits depend neither on who runs beside it nor on the number of threads.
//
// `Vec` is a vector of floats of the instruction set; `load_page` turns rows of the cache into floats.
#pragma once
#include "kernels/cpu/math.h"
#include "kernels/cpu/row_math.h"
#include "kernels/cpu/scratch.h"

namespace {

constexpr uint32_t kQueries = 64;      // of a run: tokens x heads that share a KV head
constexpr uint32_t kBlockVectors = 4;  // vectors of positions or values that are summed at once

struct Query {
  const float* q;
  float* y;  // sum of exp(score - max) * value over the positions so far
  float max, sum;
  uint32_t begin, end;  // positions that it sees
  float weight[kPageTokens];
};

// A page as floats: keys [key_width][kPageTokens], values [kPageTokens][value_stride].
struct FloatPage {
  float* keys;
  float* values;
  uint32_t value_stride;
  uint32_t first, begin, end;  // its first position; the part that any query of the run sees, relative
};

// The positions that a query sees of a page, relative to it.
struct Seen {
  uint32_t begin, end;
};

inline Seen seen_of(const Query& query, const FloatPage& page) {
  const uint32_t begin = query.begin > page.first ? query.begin - page.first : 0;
  const uint32_t end = query.end > page.first ? query.end - page.first : 0;
  return {begin, end < kPageTokens ? end : kPageTokens};
}

// Scores of R queries over the page; those a query does not see are worked out too, and not used.
template <class Vec, int R>
inline void score_rows(const AttentionBlock& b, const FloatPage& page, Query* const* queries) {
  constexpr uint32_t kStep = kBlockVectors * Vec::kLanes;
  for (uint32_t s = page.begin / kStep * kStep; s < page.end; s += kStep) {
    typename Vec::Type sum[R][kBlockVectors];
    for (int r = 0; r < R; ++r)
      for (uint32_t v = 0; v < kBlockVectors; ++v) sum[r][v] = Vec::set1(0.f);
    const float* keys = page.keys + s;
    for (uint32_t i = 0; i < b.key_width; ++i, keys += kPageTokens) {
      typename Vec::Type key[kBlockVectors];
      for (uint32_t v = 0; v < kBlockVectors; ++v) key[v] = Vec::load(keys + v * Vec::kLanes);
      for (int r = 0; r < R; ++r) {
        const typename Vec::Type q = Vec::set1(queries[r]->q[i]);
        for (uint32_t v = 0; v < kBlockVectors; ++v) sum[r][v] = Vec::fma(q, key[v], sum[r][v]);
      }
    }
    for (int r = 0; r < R; ++r)
      for (uint32_t v = 0; v < kBlockVectors; ++v)
        Vec::store(queries[r]->weight + s + v * Vec::kLanes, Vec::mul(sum[r][v], Vec::set1(b.scale)));
  }
}

// y += weight[s] * value[s] for positions begin .. end - 1 in order, for R queries.
template <class Vec, int R>
inline void value_rows(const AttentionBlock& b, const FloatPage& page, Query* const* queries, uint32_t begin,
                       uint32_t end) {
  constexpr uint32_t kStep = kBlockVectors * Vec::kLanes;
  for (uint32_t i = 0; i < b.value_width; i += kStep) {
    const uint32_t left = b.value_width - i;
    typename Vec::Type sum[R][kBlockVectors];
    for (int r = 0; r < R; ++r)
      for (uint32_t v = 0; v < kBlockVectors; ++v)
        sum[r][v] = Vec::load_some(queries[r]->y + i + v * Vec::kLanes, left, v * Vec::kLanes);
    const float* values = page.values + uint64_t(begin) * page.value_stride + i;
    for (uint32_t s = begin; s < end; ++s, values += page.value_stride) {
      typename Vec::Type value[kBlockVectors];
      for (uint32_t v = 0; v < kBlockVectors; ++v) value[v] = Vec::load(values + v * Vec::kLanes);
      for (int r = 0; r < R; ++r) {
        const typename Vec::Type weight = Vec::set1(queries[r]->weight[s]);
        for (uint32_t v = 0; v < kBlockVectors; ++v) sum[r][v] = Vec::fma(weight, value[v], sum[r][v]);
      }
    }
    for (int r = 0; r < R; ++r)
      for (uint32_t v = 0; v < kBlockVectors; ++v)
        Vec::store_some(queries[r]->y + i + v * Vec::kLanes, left, v * Vec::kLanes, sum[r][v]);
  }
}

// Turns a query's scores of the page into weights against the new maximum and rescales what is there.
template <class Vec>
inline void take_scores(const AttentionBlock& b, const Seen& seen, Query* query) {
  constexpr float kNone = -__builtin_inff();
  float* weight = query->weight;
  if (b.softcap > 0)
    for (uint32_t s = seen.begin; s < seen.end; ++s) weight[s] = softcap_f32(b.softcap, weight[s]);
  for (uint32_t s = 0; s < seen.begin; ++s) weight[s] = kNone;
  for (uint32_t s = seen.end; s < kPageTokens; ++s) weight[s] = kNone;
  typename Vec::Type most = Vec::load(weight);
  for (uint32_t s = Vec::kLanes; s < kPageTokens; s += Vec::kLanes)
    most = Vec::max(most, Vec::load(weight + s));
  float max = Vec::lane_max(most);
  max = query->max > max ? query->max : max;
  const float rescale = query->max == kNone ? 0.f : exp_f32(query->max - max);
  typename Vec::Type sum = Vec::set1(0.f);
  for (uint32_t s = 0; s < kPageTokens; s += Vec::kLanes) {
    const typename Vec::Type e = Vec::exp(Vec::sub(Vec::load(weight + s), Vec::set1(max)));
    Vec::store(weight + s, e);
    sum = Vec::add(sum, e);
  }
  query->max = max;
  query->sum = query->sum * rescale + Vec::lane_sum(sum);
  if (rescale != 1.f)
    for (uint32_t i = 0; i < b.value_width; ++i) query->y[i] *= rescale;
}

// The queries of R rows together over the positions that all of them see, singly before and after:
// what one does not see must not meet its weight of 0, since 0 times infinity is not 0.
template <class Vec, int R>
inline void take_rows(const AttentionBlock& b, const FloatPage& page, Query* const* queries) {
  score_rows<Vec, R>(b, page, queries);
  uint32_t begin = 0, end = kPageTokens;
  Seen seen[R];
  for (int r = 0; r < R; ++r) {
    seen[r] = seen_of(*queries[r], page);
    take_scores<Vec>(b, seen[r], queries[r]);
    begin = seen[r].begin > begin ? seen[r].begin : begin;
    end = seen[r].end < end ? seen[r].end : end;
  }
  if (begin > end) begin = end;
  for (int r = 0; r < R; ++r)
    if (seen[r].begin < begin) value_rows<Vec, 1>(b, page, queries + r, seen[r].begin, begin);
  if (begin < end) value_rows<Vec, R>(b, page, queries, begin, end);
  for (int r = 0; r < R; ++r) {
    const uint32_t from = seen[r].begin > end ? seen[r].begin : end;
    if (from < seen[r].end) value_rows<Vec, 1>(b, page, queries + r, from, seen[r].end);
  }
}

template <class Vec>
void take_page(const AttentionBlock& b, const FloatPage& page, Query* queries, uint32_t count) {
  Query* live[kQueries];
  uint32_t some = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Seen seen = seen_of(queries[i], page);
    if (seen.begin < seen.end) live[some++] = &queries[i];
  }
  uint32_t i = 0;
  for (; i + Vec::kRows <= some; i += Vec::kRows) take_rows<Vec, Vec::kRows>(b, page, live + i);
  for (; i < some; ++i) take_rows<Vec, 1>(b, page, live + i);
}

// Queries: `count` heads from `first_head` for each of `tokens` tokens from `t`, of one sequence.
template <class Vec>
void attend(const AttentionBlock& b, const StepState* step, uint32_t t, uint32_t tokens, uint32_t kv_head,
            uint32_t first_head, uint32_t count, float* scratch) {
  Query queries[kQueries];
  uint32_t some = 0, begin = ~0u, end = 0;
  for (uint32_t token = t; token < t + tokens; ++token)
    for (uint32_t h = first_head; h < first_head + count; ++h) {
      Query& query = queries[some++];
      query.q = (const float*)b.q + (uint64_t(token) * b.heads + h) * b.key_width;
      query.y = (float*)b.y + (uint64_t(token) * b.heads + h) * b.value_width;
      query.max = b.sinks ? ((const float*)b.sinks)[h] : -__builtin_inff();
      query.sum = b.sinks ? 1.f : 0.f;
      query.end = step->row[token].position + 1;
      query.begin = b.window && b.window < query.end ? query.end - b.window : 0;
      __builtin_memset(query.y, 0, b.value_width * sizeof(float));
      begin = query.begin < begin ? query.begin : begin;
      end = query.end > end ? query.end : end;
    }
  FloatPage page;
  page.value_stride = (b.value_width + kBlockVectors * Vec::kLanes - 1) / (kBlockVectors * Vec::kLanes) *
                      (kBlockVectors * Vec::kLanes);
  page.keys = scratch;
  page.values = scratch + uint64_t(b.key_width + Vec::kLanes) * kPageTokens;
  for (page.first = begin / kPageTokens * kPageTokens; page.first < end; page.first += kPageTokens) {
    page.begin = begin > page.first ? begin - page.first : 0;
    page.end = end - page.first < kPageTokens ? end - page.first : kPageTokens;
    const uint64_t pool_page = page_of(step, step->row[t].sequence, page.first);
    Vec::load_keys(b, (const uint8_t*)b.keys + pool_page * b.key_page_bytes, kv_head, page);
    Vec::load_values(b, (const uint8_t*)b.values + pool_page * b.value_page_bytes, kv_head, page);
    take_page<Vec>(b, page, queries, some);
  }
  for (uint32_t i = 0; i < some; ++i)
    for (uint32_t k = 0; k < b.value_width; ++k) queries[i].y[k] /= queries[i].sum;
}

// Tokens first .. last - 1 with one KV head, in runs of one sequence.
template <class Vec>
void attend_tokens(const AttentionBlock& b, const StepState* step, uint32_t first, uint32_t last,
                   uint32_t kv_head, float* scratch) {
  const uint32_t shared = b.heads / b.kv_heads;
  const uint32_t heads = shared < kQueries ? shared : kQueries, most = kQueries / heads;
  for (uint32_t t = first; t < last;) {
    uint32_t tokens = 1;
    while (tokens < most && t + tokens < last && step->row[t + tokens].sequence == step->row[t].sequence)
      ++tokens;
    for (uint32_t h = 0; h < shared; h += heads)
      attend<Vec>(b, step, t, tokens, kv_head, kv_head * shared + h, shared - h < heads ? shared - h : heads,
                  scratch);
    t += tokens;
  }
}

// Later tokens of a prompt see more. So the tokens are dealt from both ends in turn: pair i is the i-th
// token and the i-th from the end, and workers with equal shares of groups have equal work.
template <class Vec>
void attention_groups(const AttentionBlock& b, uint32_t first_group, uint32_t group_count, Scratch* scratch) {
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, kRowsTokens);
  for (uint32_t kv_head = 0; kv_head < b.kv_heads; ++kv_head) {
    // Places a .. z - 1 of the dealt order hold this head's groups.
    const uint32_t last_group = first_group + group_count;
    const uint32_t a = first_group > kv_head ? (first_group - kv_head + b.kv_heads - 1) / b.kv_heads : 0;
    uint32_t z = last_group > kv_head ? (last_group - kv_head + b.kv_heads - 1) / b.kv_heads : 0;
    z = z < live ? z : live;
    if (a >= z) continue;
    attend_tokens<Vec>(b, step, (a + 1) / 2, (z + 1) / 2, kv_head, (float*)scratch->data);    // even places
    attend_tokens<Vec>(b, step, live - z / 2, live - a / 2, kv_head, (float*)scratch->data);  // odd places
  }
}

}  // namespace
