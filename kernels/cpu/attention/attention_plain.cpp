// attention_plain: attention for any shape and type of cache; the definition of right.
//   y[t][h] = softmax over s of (scale * q[t][h] . k[s]) times v[s]     all query heads h of one KV head
//   grid    (tokens * KV heads)
//   group   a token and a KV head; its query heads go through the cache together, 16 at a time. Softmax runs
//           online, a page at a time in order of position
//   scratch none: y itself holds the sums, so no length of context needs memory
//   moves   keys and values of all positions once for each 16 query heads; queries and y from the caches
// The argument block is AttentionBlock in kernels/abi/ops.h.
#include "kernels/cpu/math.h"
#include "kernels/cpu/row_math.h"
#include "kernels/cpu/scratch.h"

namespace {

constexpr uint32_t kHeads = 16;
constexpr float kNone = -__builtin_inff();

struct Head {
  const float* q;
  float* y;
  float max, sum;             // of the positions so far; y is sum of exp(score - max) * value
  float weight[kPageTokens];  // scores of one page, then their exponentials
};

struct Page {
  const uint8_t* keys;
  const uint8_t* values;
  uint32_t begin, end;  // positions within the page
};

void start(const AttentionBlock& b, uint32_t t, uint32_t h, Head* head) {
  head->q = (const float*)b.q + (uint64_t(t) * b.heads + h) * b.key_width;
  head->y = (float*)b.y + (uint64_t(t) * b.heads + h) * b.value_width;
  head->max = b.sinks ? ((const float*)b.sinks)[h] : kNone;
  head->sum = b.sinks ? 1.f : 0.f;
  for (uint32_t i = 0; i < b.value_width; ++i) head->y[i] = 0;
}

// Turns the page's scores into weights against the new maximum and rescales what is there.
void take_scores(const AttentionBlock& b, const Page& page, Head* head) {
  float max = head->max;
  for (uint32_t s = page.begin; s < page.end; ++s) max = head->weight[s] > max ? head->weight[s] : max;
  const float rescale = head->max == kNone ? 0.f : exp_f32(head->max - max);
  head->max = max;
  head->sum *= rescale;
  for (uint32_t i = 0; i < b.value_width; ++i) head->y[i] *= rescale;
  for (uint32_t s = page.begin; s < page.end; ++s) {
    head->weight[s] = exp_f32(head->weight[s] - max);
    head->sum += head->weight[s];
  }
}

void take_page(const AttentionBlock& b, const Page& page, Head* heads, uint32_t count) {
  float row[kMaxHeadWidth];
  const uint32_t key_bytes = cache_head_bytes(b.key_type, b.key_width);
  const uint32_t value_bytes = cache_head_bytes(b.value_type, b.value_stride);
  for (uint32_t s = page.begin; s < page.end; ++s) {
    cache_load(b.key_type, page.keys + uint64_t(s) * key_bytes, b.key_width, row);
    for (uint32_t h = 0; h < count; ++h) {
      const float score = b.scale * dot(heads[h].q, row, b.key_width);
      heads[h].weight[s] = b.softcap > 0 ? softcap_f32(b.softcap, score) : score;
    }
  }
  for (uint32_t h = 0; h < count; ++h) take_scores(b, page, &heads[h]);
  for (uint32_t s = page.begin; s < page.end; ++s) {
    cache_load(b.value_type, page.values + uint64_t(s) * value_bytes, b.value_width, row);
    for (uint32_t h = 0; h < count; ++h) {
      const float weight = heads[h].weight[s];
      float* y = heads[h].y;
      for (uint32_t i = 0; i < b.value_width; ++i) y[i] += weight * row[i];
    }
  }
}

void attend(const AttentionBlock& b, const StepState* step, uint32_t t, uint32_t kv_head, uint32_t first_head,
            uint32_t count) {
  Head heads[kHeads];
  for (uint32_t h = 0; h < count; ++h) start(b, t, first_head + h, &heads[h]);
  const StepRow& row = step->row[t];
  const uint32_t end = row.position + 1;
  const uint32_t begin = b.window && b.window < end ? end - b.window : 0;
  const uint64_t key_at = uint64_t(kv_head) * kPageTokens * cache_head_bytes(b.key_type, b.key_width);
  const uint64_t value_at = uint64_t(kv_head) * kPageTokens * cache_head_bytes(b.value_type, b.value_stride);
  for (uint32_t s = begin / kPageTokens * kPageTokens; s < end; s += kPageTokens) {
    const uint64_t pool_page = page_of(step, row.sequence, s);
    Page page;
    page.keys = (const uint8_t*)b.keys + pool_page * b.key_page_bytes + key_at;
    page.values = (const uint8_t*)b.values + pool_page * b.value_page_bytes + value_at;
    page.begin = begin > s ? begin - s : 0;
    page.end = end - s < kPageTokens ? end - s : kPageTokens;
    take_page(b, page, heads, count);
  }
  for (uint32_t h = 0; h < count; ++h)
    for (uint32_t i = 0; i < b.value_width; ++i) heads[h].y[i] /= heads[h].sum;
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const AttentionBlock& b = *(const AttentionBlock*)block;
  const StepState* step = step_of(b.step);
  const uint32_t live = live_rows(step, kRowsTokens), shared = b.heads / b.kv_heads;
  for (uint32_t group = first_group; group < first_group + group_count; ++group) {
    const uint32_t t = group / b.kv_heads, kv_head = group % b.kv_heads;
    if (t >= live) return;
    for (uint32_t h = 0; h < shared; h += kHeads)
      attend(b, step, t, kv_head, kv_head * shared + h, shared - h < kHeads ? shared - h : kHeads);
  }
}
