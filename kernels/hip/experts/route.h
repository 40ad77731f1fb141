// The choice of a token's experts. The place of an expert is the number of experts that come before it in the
// order (larger score, then lower index), so nothing needs to be sorted. Block is RouteBlock, or has its
// fields. The build defines GROUP.
#pragma once
#include "kernels/hip/math.h"
#include "kernels/hip/reduce.h"
#include "kernels/hip/step.h"

namespace {

// The key by which each expert is chosen; 0 for one that cannot be chosen. Later the weights of those chosen.
SHARED_ARRAY(uint, keys, kMaxExperts, 0);
SHARED_ARRAY(uint, group_keys, kMaxExpertGroups, END_OF(keys));
SHARED_ARRAY(uint, chosen, kMaxExperts, END_OF(group_keys));  // the best first

// A token's logits, and the softmax over all of them.
struct Logits {
  const GLOBAL float* of;  // [experts]
  float max, exp_sum;
};

}  // namespace

template <class Block>
DEVICE float probability(const Block& p, const Logits& logits, uint e) {
  const float x = logits.of[e];
  return p.gating == kGatingSigmoid ? 1 / (1 + exp_f32(-x)) : exp_f32(x - logits.max) / logits.exp_sum;
}

// The key of the score by which an expert is chosen; 0 where the score is not a number. Without a bias the
// score is the logit, since probabilities of 0 would tie.
template <class Block>
DEVICE uint score_key(const Block& p, const Logits& logits, uint e) {
  const float score = p.bias ? probability(p, logits, e) + p.bias[e] : logits.of[e];
  return is_nan(score) ? 0 : key_of(score);
}

DEVICE Logits find_softmax(const GLOBAL float* logits, uint experts) {
  uint key = 0;
  for (uint e = thread_x(); e < experts; e += GROUP)
    key = max(key, is_nan(logits[e]) ? 0 : key_of(logits[e]));
  const float max_logit = of_key(group_max(key));
  float sum = 0;
  for (uint e = thread_x(); e < experts; e += GROUP) sum += exp_f32(logits[e] - max_logit);
  return {logits, max_logit, group_sum(sum)};
}

// The scores of expert groups: that of the best expert, or with a bias the sum of the two best.
DEVICE void score_groups(uint groups, uint size, bool sums_two) {
  const float none = -__builtin_inff();
  for (uint g = thread_x(); g < groups; g += GROUP) {
    uint first = 0, second = 0;
    for (uint e = g * size; e < (g + 1) * size; ++e) {
      second = max(second, min(first, keys[e]));
      first = max(first, keys[e]);
    }
    const float score = of_key(first) + (second != 0 && sums_two ? of_key(second) : 0);
    group_keys[g] = first == 0 ? key_of(none) : is_nan(score) ? 0 : key_of(score);
  }
}

DEVICE bool group_allowed(uint groups, uint groups_used, uint g) {
  uint before = 0;
  for (uint i = 0; i < groups; ++i)
    before += group_keys[i] > group_keys[g] || (group_keys[i] == group_keys[g] && i < g);
  return group_keys[g] != 0 && before < groups_used;
}

// Removes the experts of all groups but the best.
template <class Block>
DEVICE void choose_groups(const Block& p) {
  const uint size = p.experts / p.groups;
  score_groups(p.groups, size, p.bias != nullptr);
  group_barrier();
  for (uint e = thread_x(); e < p.experts; e += GROUP)
    if (!group_allowed(p.groups, p.groups_used, e / size)) keys[e] = 0;
  group_barrier();
}

// How many experts come before expert e.
DEVICE uint place_of(uint experts, uint e) {
  const uint own_key = keys[e];
  uint before = 0;
  for (uint i = 0; i < experts; ++i) before += keys[i] + (i < e) > own_key;
  return before;
}

// Chooses the experts of token t. All threads of a group call it.
template <class Block>
DEVICE void route(const Block& p, uint t) {
  const Logits logits = find_softmax(p.logits + t * p.experts, p.experts);
  for (uint e = thread_x(); e < p.experts; e += GROUP) keys[e] = score_key(p, logits, e);
  // For places that no expert takes.
  for (uint j = thread_x(); j < p.used; j += GROUP) chosen[j] = 0;
  group_barrier();
  if (p.groups_used != p.groups) choose_groups(p);
  for (uint e = thread_x(); e < p.experts; e += GROUP) {
    const uint place = place_of(p.experts, e);
    if (keys[e] != 0 && place < p.used) chosen[place] = e;
  }
  group_barrier();
  for (uint j = thread_x(); j < p.used; j += GROUP)
    keys[j] = __builtin_bit_cast(uint, probability(p, logits, chosen[j]));
  group_barrier();
  float total = 0;
  for (uint j = 0; j < p.used; ++j) total += __builtin_bit_cast(float, keys[j]);
  for (uint j = thread_x(); j < p.used; j += GROUP) {
    const float weight = __builtin_bit_cast(float, keys[j]);
    p.ids[t * p.used + j] = chosen[j];
    p.weights[t * p.used + j] = (p.normalise ? weight / total : weight) * p.scale;
  }
}
