// route_plain: one group is one token. The experts are found one after the other, each the next in
// the order (larger logit, then lower index), so nothing needs to be stored or sorted.
#include "kernels/cpu/math.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

namespace {

// The first in order after `last` (none yet: ~0u). With NaN among the logits none may follow: then
// expert 0, which is at least an expert.
uint32_t next_expert(const float* logits, uint32_t experts, uint32_t last) {
  uint32_t best = ~0u;
  for (uint32_t e = 0; e < experts; ++e) {
    if (logits[e] != logits[e]) continue;
    const bool after = last == ~0u || logits[e] < logits[last] || (logits[e] == logits[last] && e > last);
    if (after && (best == ~0u || logits[e] > logits[best])) best = e;
  }
  return best == ~0u ? 0 : best;
}

void route(const RouteBlock& b, uint32_t t) {
  const float* logits = (const float*)b.logits + uint64_t(t) * b.experts;
  uint32_t* ids = (uint32_t*)b.ids + uint64_t(t) * b.used;
  float* weights = (float*)b.weights + uint64_t(t) * b.used;
  for (uint32_t j = 0; j < b.used; ++j) ids[j] = next_expert(logits, b.experts, j ? ids[j - 1] : ~0u);
  const float max = logits[ids[0]];
  float sum = 0;
  for (uint32_t e = 0; e < b.experts; ++e) sum += exp_f32(logits[e] - max);
  float chosen = 0;
  for (uint32_t j = 0; j < b.used; ++j) {
    weights[j] = exp_f32(logits[ids[j]] - max) / sum;
    chosen += weights[j];
  }
  if (b.normalise)
    for (uint32_t j = 0; j < b.used; ++j) weights[j] /= chosen;
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const RouteBlock& b = *(const RouteBlock*)block;
  const uint32_t live = live_rows(step_of(b.step), kRowsTokens);
  for (uint32_t t = first_group; t < first_group + group_count && t < live; ++t) route(b, t);
}
