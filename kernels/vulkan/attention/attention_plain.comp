// attention_plain: attention for any shape and type of cache; the definition of right.
//   y[t][h] = softmax over s of (scale * q[t][h] . k[s]) times v[s]     all query heads h of one KV head
//   grid    (tokens * KV heads)
//   group   GROUP threads, for kHeads query heads at a time. Softmax runs online, a page at a time in order
//           of position: a subgroup makes the score of a position, then the weights of a query head; a thread
//           sums kThreadValues values of each head
//   shared  kHeads * (kPageTokens + 3) floats: the scores of a page; rescale, maximum and sum of each head
//   moves   keys and values of all positions once for each kHeads query heads; queries once for each
//           position, from the caches; y
// The argument block is AttentionBlock in kernels/abi/ops.h.
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "kernels/vulkan/attention/cache.h"

layout(push_constant, scalar) uniform Push { AttentionBlock p; };

const uint kHeads = 8;  // query heads at a time
const uint kThreadValues = (kMaxHeadWidth + GROUP - 1) / GROUP;  // values of a head that a thread sums
const float kNone = -3e38;  // below every score; exp_f32(kNone - score) is 0

shared float weights[kHeads][kPageTokens];  // scores of a page, then their exponentials
shared float head_rescale[kHeads], head_max[kHeads], head_sum[kHeads];

struct Page {
  uint64_t keys, values;
  uint begin, end;  // positions within the page
};

// Scores of the page's positions for `count` query heads, whose first query begins at value `q`.
void score_page(Page page, uint q, uint count) {
  const uint key_bytes = cache_head_bytes(p.key_type, p.key_width);
  for (uint s = page.begin + gl_SubgroupID; s < page.end; s += gl_NumSubgroups) {
    float sums[kHeads];
    [[unroll]] for (uint h = 0; h < kHeads; ++h) sums[h] = 0;
    for (uint i = gl_SubgroupInvocationID; i < p.key_width; i += gl_SubgroupSize) {
      const float key = cache_value(p.key_type, page.keys + s * key_bytes, i);
      [[unroll]] for (uint h = 0; h < kHeads; ++h)
        if (h < count) sums[h] += p.q.at[q + h * p.key_width + i] * key;
    }
    [[unroll]] for (uint h = 0; h < kHeads; ++h) {
      if (h >= count) break;
      const float score = p.scale * subgroupAdd(sums[h]);
      if (gl_SubgroupInvocationID == 0) weights[h][s] = p.softcap > 0 ? softcap_f32(p.softcap, score) : score;
    }
  }
}

// Turns the page's scores into weights against the new maximum.
void weigh_page(Page page, uint count) {
  for (uint h = gl_SubgroupID; h < count; h += gl_NumSubgroups) {
    float most = head_max[h];
    for (uint s = page.begin + gl_SubgroupInvocationID; s < page.end; s += gl_SubgroupSize)
      most = max(most, weights[h][s]);
    most = subgroupMax(most);
    float sum = 0;
    for (uint s = page.begin + gl_SubgroupInvocationID; s < page.end; s += gl_SubgroupSize) {
      weights[h][s] = exp_f32(weights[h][s] - most);
      sum += weights[h][s];
    }
    sum = subgroupAdd(sum);
    if (gl_SubgroupInvocationID != 0) continue;
    head_rescale[h] = exp_f32(head_max[h] - most);
    head_sum[h] = head_sum[h] * head_rescale[h] + sum;
    head_max[h] = most;
  }
}

// Adds the weighted values of the page to the sums y.
void add_values(Page page, uint count, inout float y[kThreadValues][kHeads]) {
  const uint value_bytes = cache_head_bytes(p.value_type, p.value_stride);
  [[unroll]] for (uint j = 0; j < kThreadValues; ++j) {
    const uint i = j * GROUP + gl_LocalInvocationIndex;
    if (i >= p.value_width) break;
    [[unroll]] for (uint h = 0; h < kHeads; ++h)
      if (h < count) y[j][h] *= head_rescale[h];
    for (uint s = page.begin; s < page.end; ++s) {
      const float value = cache_value(p.value_type, page.values + s * value_bytes, i);
      [[unroll]] for (uint h = 0; h < kHeads; ++h)
        if (h < count) y[j][h] += weights[h][s] * value;
    }
  }
}

// Attention of token t for query heads first_head .. first_head + count - 1.
void attend(StepState_address step, uint t, uint kv_head, uint first_head, uint count) {
  const StepRow row = step.state.row[t];
  const uint end = row.position + 1, begin = p.window != 0 && p.window < end ? end - p.window : 0;
  const uint q = (t * p.heads + first_head) * p.key_width;
  barrier();
  if (gl_LocalInvocationIndex < count) {
    const bool sinks = uint64_t(p.sinks) != 0;
    head_max[gl_LocalInvocationIndex] = sinks ? p.sinks.at[first_head + gl_LocalInvocationIndex] : kNone;
    head_sum[gl_LocalInvocationIndex] = sinks ? 1 : 0;
  }
  float y[kThreadValues][kHeads];
  [[unroll]] for (uint j = 0; j < kThreadValues; ++j)
    [[unroll]] for (uint h = 0; h < kHeads; ++h) y[j][h] = 0;
  const uint key_head = kv_head * kPageTokens * cache_head_bytes(p.key_type, p.key_width);
  const uint value_head = kv_head * kPageTokens * cache_head_bytes(p.value_type, p.value_stride);
  for (uint s = begin / kPageTokens * kPageTokens; s < end; s += kPageTokens) {
    const uint64_t pool_page = page_of(step, row.sequence, s);
    const Page page = Page(uint64_t(p.keys) + pool_page * p.key_page_bytes + key_head,
                           uint64_t(p.values) + pool_page * p.value_page_bytes + value_head,
                           begin > s ? begin - s : 0, min(end - s, kPageTokens));
    score_page(page, q, count);
    barrier();
    weigh_page(page, count);
    barrier();
    add_values(page, count, y);
    barrier();
  }
  [[unroll]] for (uint j = 0; j < kThreadValues; ++j) {
    const uint i = j * GROUP + gl_LocalInvocationIndex;
    [[unroll]] for (uint h = 0; h < kHeads; ++h)
      if (i < p.value_width && h < count)
        p.y.at[(t * p.heads + first_head + h) * p.value_width + i] = y[j][h] / head_sum[h];
  }
}

void main() {
  StepState_address step = step_of(p.step);
  const uint t = gl_WorkGroupID.x / p.kv_heads, kv_head = gl_WorkGroupID.x % p.kv_heads;
  if (t >= live_rows(step, kRowsTokens)) return;
  const uint shared_by = p.heads / p.kv_heads;
  for (uint h = 0; h < shared_by; h += kHeads)
    attend(step, t, kv_head, kv_head * shared_by + h, min(shared_by - h, kHeads));
}
