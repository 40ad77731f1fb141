// The choice of a token's experts. The place of an expert is the number of experts that come before it in the
// order (larger score, then lower index), so nothing needs to be sorted.
//
// Before it includes this file the kernel declares its argument block `p`, which has the fields of
// RouteBlock. The build defines GROUP.
#ifndef GRETA_VULKAN_ROUTE_H
#define GRETA_VULKAN_ROUTE_H
#include "kernels/gpu/math.h"
#include "kernels/vulkan/reduce.h"

// The key by which each expert is chosen; 0 for one that cannot be chosen. Later the weights of those chosen.
shared uvec4 keys[kMaxExperts / 4];
shared uint group_keys[kMaxExpertGroups];
shared uint chosen[kMaxExperts];  // the best first

uint logits;                // where the token's logits begin
float max_logit, exp_sum;   // of the softmax over all experts

float probability(uint e) {
  const float x = p.logits.at[logits + e];
  return p.gating == kGatingSigmoid ? 1 / (1 + exp_f32(-x)) : exp_f32(x - max_logit) / exp_sum;
}

// The key of the score by which an expert is chosen; 0 where the score is not a number. Without a bias the
// score is the logit, since probabilities of 0 would tie.
uint score_key(uint e) {
  const float score = uint64_t(p.bias) != 0 ? probability(e) + p.bias.at[e] : p.logits.at[logits + e];
  return is_nan(score) ? 0 : key_of(score);
}

uint key_at(uint e) { return keys[e / 4][e % 4]; }

// Sets max_logit and exp_sum.
void find_softmax() {
  uint key = 0;
  for (uint e = gl_LocalInvocationIndex; e < p.experts; e += GROUP) {
    const float x = p.logits.at[logits + e];
    key = max(key, is_nan(x) ? 0 : key_of(x));
  }
  max_logit = of_key(group_max(key));
  float thread_sum = 0;
  for (uint e = gl_LocalInvocationIndex; e < p.experts; e += GROUP)
    thread_sum += exp_f32(p.logits.at[logits + e] - max_logit);
  exp_sum = group_sum(thread_sum);
}

// The scores of expert groups: that of the best expert, or with a bias the sum of the two best.
void score_groups(uint size) {
  for (uint g = gl_LocalInvocationIndex; g < p.groups; g += GROUP) {
    uint first = 0, second = 0;
    for (uint e = g * size; e < (g + 1) * size; ++e) {
      const uint key = key_at(e);
      second = max(second, min(first, key));
      first = max(first, key);
    }
    const float score = of_key(first) + (second != 0 && uint64_t(p.bias) != 0 ? of_key(second) : 0);
    group_keys[g] = first == 0 ? key_of(uintBitsToFloat(0xff800000u)) : is_nan(score) ? 0 : key_of(score);
  }
}

bool group_allowed(uint g) {
  uint before = 0;
  for (uint i = 0; i < p.groups; ++i)
    before += uint(group_keys[i] > group_keys[g] || (group_keys[i] == group_keys[g] && i < g));
  return group_keys[g] != 0 && before < p.groups_used;
}

// Removes the experts of all groups but the best.
void choose_groups() {
  const uint size = p.experts / p.groups;
  score_groups(size);
  barrier();
  for (uint e = gl_LocalInvocationIndex; e < p.experts; e += GROUP)
    if (!group_allowed(e / size)) keys[e / 4][e % 4] = 0;
  barrier();
}

// How many experts come before expert e.
uint place_of(uint e) {
  const uint own_key = key_at(e);
  uvec4 before = uvec4(0);
  for (uint i = 0; i < p.experts; i += 4)
    before += uvec4(greaterThan(keys[i / 4] + uvec4(lessThan(i + uvec4(0, 1, 2, 3), uvec4(e))),
                                uvec4(own_key)));
  return before.x + before.y + before.z + before.w;
}

// Chooses the experts of token `t`. All threads of a group call it.
void route(uint t) {
  logits = t * p.experts;
  find_softmax();
  for (uint e = gl_LocalInvocationIndex; e < (p.experts + 3) / 4 * 4; e += GROUP)
    keys[e / 4][e % 4] = e < p.experts ? score_key(e) : 0;
  // For places that no expert takes.
  for (uint j = gl_LocalInvocationIndex; j < p.used; j += GROUP) chosen[j] = 0;
  barrier();
  if (p.groups_used != p.groups) choose_groups();
  for (uint e = gl_LocalInvocationIndex; e < p.experts; e += GROUP) {
    const uint place = place_of(e);
    if (key_at(e) != 0 && place < p.used) chosen[place] = e;
  }
  barrier();
  for (uint j = gl_LocalInvocationIndex; j < p.used; j += GROUP)
    keys[j / 4][j % 4] = floatBitsToUint(probability(chosen[j]));
  barrier();
  float total = 0;
  for (uint j = 0; j < p.used; ++j) total += uintBitsToFloat(key_at(j));
  for (uint j = gl_LocalInvocationIndex; j < p.used; j += GROUP) {
    const float weight = uintBitsToFloat(key_at(j));
    p.ids.at[t * p.used + j] = chosen[j];
    p.weights.at[t * p.used + j] = (p.normalise != 0 ? weight / total : weight) * p.scale;
  }
}
#endif
