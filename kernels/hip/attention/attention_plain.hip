// attention_plain: attention for any shape and type of cache; the definition of right.
//   y[t][h] = softmax over s of (scale * q[t][h] . k[s]) times v[s]     all query heads h of one KV head
//   grid    (tokens * KV heads)
//   group   GROUP threads, for kHeads query heads at a time. Softmax runs online, a page at a time in order
//           of position: a wave makes the score of a position, then the weights of a query head; a thread
//           sums kThreadValues values of each head
//   shared  kHeads * (kPageTokens + 3) floats: the scores of a page; rescale, maximum and sum of each head
//   moves   keys and values of all positions once for each kHeads query heads; queries once for each
//           position, from the caches; y
// The argument block is AttentionBlock in kernels/abi/ops.h.
#include "kernels/hip/attention/cache.h"
#include "kernels/hip/math.h"

namespace {

constexpr uint kHeads = 4;  // query heads at a time
constexpr uint kThreadValues = (kMaxHeadWidth + GROUP - 1) / GROUP;  // values of a head that a thread sums
constexpr uint kWaves = GROUP / kWave;
constexpr uint kLaneScores = kPageTokens / kWave;
constexpr float kNone = -3e38f;  // below every score; exp_f32(kNone - score) is 0

SHARED float weights[kHeads][kPageTokens];  // scores of a page, then their exponentials
SHARED float head_rescale[kHeads], head_max[kHeads], head_sum[kHeads];

struct Page {
  const GLOBAL byte* keys;  // of the KV head
  const GLOBAL byte* values;
  uint begin, end;  // positions within the page
};

// The query heads first .. first + count - 1 of token t, which share a KV head.
struct Heads {
  uint t, kv_head, first, count;
};

}  // namespace

// Scores of the page's positions for `count` query heads, whose first query is at `q`.
DEVICE void score_page(const ARGUMENT AttentionBlock& p, const Page& page, const GLOBAL float* q,
                       uint count) {
  const uint key_bytes = cache_head_bytes(p.key_type, p.key_width);
  for (uint s = page.begin + wave_index(); s < page.end; s += kWaves) {
    float sums[kHeads] = {};
    for (uint i = lane(); i < p.key_width; i += kWave) {
      const float key = cache_value(p.key_type, page.keys + s * key_bytes, i);
      for (uint h = 0; h < kHeads; ++h) sums[h] += q[min(h, count - 1) * p.key_width + i] * key;
    }
    for (uint h = 0; h < kHeads; ++h) {  // those of heads past the last are not used
      const float sum = wave_sum(sums[h]);
      if (lane() == 0) weights[h][s] = sum;
    }
  }
}

// Turns the page's products into weights against the new maximum. A lane has kLaneScores of them.
DEVICE void weigh_page(const ARGUMENT AttentionBlock& p, const Page& page, uint count) {
  for (uint h = wave_index(); h < count; h += kWaves) {
    float scores[kLaneScores], most = head_max[h], sum = 0;
    for (uint j = 0; j < kLaneScores; ++j) {
      const uint s = j * kWave + lane();
      const float score = p.scale * weights[h][s];
      scores[j] = p.softcap > 0 ? softcap_f32(p.softcap, score) : score;
      if (s < page.begin || s >= page.end) scores[j] = kNone;
      most = max(most, scores[j]);
    }
    most = wave_max(most);
    for (uint j = 0; j < kLaneScores; ++j) {
      const float weight = exp_f32(scores[j] - most);
      weights[h][j * kWave + lane()] = weight;
      sum += weight;
    }
    sum = wave_sum(sum);
    if (lane() != 0) continue;
    head_rescale[h] = exp_f32(head_max[h] - most);
    head_sum[h] = head_sum[h] * head_rescale[h] + sum;
    head_max[h] = most;
  }
}

// Adds the weighted values of the page to the sums y. Those of heads past the last are not used.
DEVICE void add_values(const ARGUMENT AttentionBlock& p, const Page& page,
                       float (&y)[kThreadValues][kHeads]) {
  const uint value_bytes = cache_head_bytes(p.value_type, p.value_stride);
  for (uint j = 0; j < kThreadValues; ++j) {
    const uint i = j * GROUP + thread_x();
    if (i >= p.value_width) break;
    for (uint h = 0; h < kHeads; ++h) y[j][h] *= head_rescale[h];
    for (uint s = page.begin; s < page.end; ++s) {
      const float value = cache_value(p.value_type, page.values + s * value_bytes, i);
      for (uint h = 0; h < kHeads; ++h) y[j][h] += weights[h][s] * value;
    }
  }
}

DEVICE void store_heads(const ARGUMENT AttentionBlock& p, const Heads& heads,
                        const float (&y)[kThreadValues][kHeads]) {
  for (uint j = 0; j < kThreadValues; ++j) {
    const uint i = j * GROUP + thread_x();
    for (uint h = 0; h < kHeads; ++h)
      if (i < p.value_width && h < heads.count)
        p.y[(heads.t * p.heads + heads.first + h) * p.value_width + i] = y[j][h] / head_sum[h];
  }
}

DEVICE void attend(const ARGUMENT AttentionBlock& p, Step step, const Heads& heads) {
  const uint sequence = step->row[heads.t].sequence, end = step->row[heads.t].position + 1;
  const uint begin = p.window != 0 && p.window < end ? end - p.window : 0;
  group_barrier();
  if (thread_x() < heads.count) {
    head_max[thread_x()] = p.sinks ? p.sinks[heads.first + thread_x()] : kNone;
    head_sum[thread_x()] = p.sinks ? 1 : 0;
  }
  float y[kThreadValues][kHeads] = {};
  const auto q = p.q + (heads.t * p.heads + heads.first) * p.key_width;
  const uint key_head = heads.kv_head * kPageTokens * cache_head_bytes(p.key_type, p.key_width);
  const uint value_head = heads.kv_head * kPageTokens * cache_head_bytes(p.value_type, p.value_stride);
  for (uint s = begin / kPageTokens * kPageTokens; s < end; s += kPageTokens) {
    const uint64_t pool_page = page_of(step, sequence, s);
    const Page page = {p.keys + pool_page * p.key_page_bytes + key_head,
                       p.values + pool_page * p.value_page_bytes + value_head, begin > s ? begin - s : 0,
                       min(end - s, uint(kPageTokens))};
    score_page(p, page, q, heads.count);
    group_barrier();
    weigh_page(p, page, heads.count);
    group_barrier();
    add_values(p, page, y);
    group_barrier();
  }
  store_heads(p, heads, y);
}

KERNEL(GROUP) void KERNEL_NAME(AttentionBlock p) {
  const Step step = step_of(p.step);
  const uint t = group_x() / p.kv_heads, kv_head = group_x() % p.kv_heads;
  if (t >= live_rows(step, kRowsTokens)) return;
  const uint shared_by = p.heads / p.kv_heads;
  for (uint h = 0; h < shared_by; h += kHeads)
    attend(reloaded_block<AttentionBlock>(), step,
           {t, kv_head, kv_head * shared_by + h, min(shared_by - h, kHeads)});
}
