// The choice of a token's experts, by a block `p` that has the fields of RouteBlock. Experts are found one after the
// other, each the next in the order (larger score, then lower index), so nothing needs to be sorted.
#ifndef GRETA_VULKAN_ROUTE_H
#define GRETA_VULKAN_ROUTE_H
#include "kernels/vulkan/math.h"
#include "kernels/vulkan/reduce.h"

shared uint group_keys[kMaxExpertGroups];

uint logits;       // where the token's begin
float most, sum;   // of softmax

float probability(uint e) {
  const float x = p.logits.at[logits + e];
  return p.gating == kGatingSigmoid ? 1 / (1 + exp_f32(-x)) : exp_f32(x - most) / sum;
}

// What experts are chosen by; 0 where that is not a number. Without a bias the logits themselves:
// probabilities of 0 would tie.
uint score_key(uint e) {
  const float score = uint64_t(p.bias) != 0 ? probability(e) + p.bias.at[e] : p.logits.at[logits + e];
  return is_nan(score) ? 0 : key_of(score);
}

void softmax_parts() {
  uint key = 0;
  for (uint e = gl_LocalInvocationIndex; e < p.experts; e += GROUP) {
    const float x = p.logits.at[logits + e];
    key = max(key, is_nan(x) ? 0 : key_of(x));
  }
  most = of_key(group_max(key));
  float mine = 0;
  for (uint e = gl_LocalInvocationIndex; e < p.experts; e += GROUP) mine += exp_f32(p.logits.at[logits + e] - most);
  sum = group_sum(mine);
}

// How good groups are: by the best expert, or with a bias by the sum of the two best.
void score_groups() {
  const uint size = p.experts / p.groups;
  for (uint g = gl_LocalInvocationIndex; g < p.groups; g += GROUP) {
    uint first = 0, second = 0;
    for (uint e = g * size; e < (g + 1) * size; ++e) {
      const uint key = score_key(e);
      second = max(second, min(first, key));
      first = max(first, key);
    }
    const float score = of_key(first) + (second != 0 && uint64_t(p.bias) != 0 ? of_key(second) : 0);
    group_keys[g] = first == 0 ? key_of(uintBitsToFloat(0xff800000u)) : is_nan(score) ? 0 : key_of(score);
  }
  barrier();
}

bool group_allowed(uint g) {
  if (p.groups_used == p.groups) return true;
  uint before = 0;
  for (uint i = 0; i < p.groups; ++i)
    before += uint(group_keys[i] > group_keys[g] || (group_keys[i] == group_keys[g] && i < g));
  return group_keys[g] != 0 && before < p.groups_used;
}

// The best of this thread's experts after `last`: {key, index}.
uvec2 next_of_thread(uvec2 last) {
  const uint size = p.experts / p.groups;
  uvec2 best = uvec2(0, ~0u);
  for (uint e = gl_LocalInvocationIndex; e < p.experts; e += GROUP) {
    const uint key = score_key(e);
    if (key > best.x && (key < last.x || (key == last.x && e > last.y)) && group_allowed(e / size))
      best = uvec2(key, e);
  }
  return best;
}

// Chooses the experts of token `t`; all threads of a group.
void route(uint t) {
  logits = t * p.experts;
  softmax_parts();
  if (p.groups_used != p.groups) score_groups();
  uvec2 last = uvec2(~0u, ~0u);
  float chosen = 0;
  for (uint j = 0; j < p.used; ++j) {
    const uvec2 mine = next_of_thread(last);
    last = group_best(mine.x, mine.y);
    const uint id = last.x == 0 ? 0 : last.y;  // at least an expert
    const float weight = probability(id);
    chosen += weight;
    if (gl_LocalInvocationIndex == 0) {
      p.ids.at[t * p.used + j] = id;
      p.weights.at[t * p.used + j] = weight;
    }
  }
  if (gl_LocalInvocationIndex != 0) return;
  for (uint j = 0; j < p.used; ++j) {
    const float weight = p.weights.at[t * p.used + j];
    p.weights.at[t * p.used + j] = (p.normalise != 0 ? weight / chosen : weight) * p.scale;
  }
}
#endif
