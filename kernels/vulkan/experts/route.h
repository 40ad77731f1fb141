// The choice of a token's experts, by a block `p` that has the fields of RouteBlock. An expert's place is how many come
// before it in the order (larger score, then lower index), so nothing needs to be sorted.
#ifndef GRETA_VULKAN_ROUTE_H
#define GRETA_VULKAN_ROUTE_H
#include "kernels/vulkan/math.h"
#include "kernels/vulkan/reduce.h"

// What each is chosen by, 0 for one that cannot be; then the weights of those chosen.
shared uvec4 keys[kMaxExperts / 4];
shared uint group_keys[kMaxExpertGroups];
shared uint chosen[kMaxExperts];  // the best first

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

uint key_at(uint e) { return keys[e / 4][e % 4]; }

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

// Only experts of the best groups can be chosen.
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
  const uint own = key_at(e);
  uvec4 before = uvec4(0);
  for (uint i = 0; i < p.experts; i += 4)
    before += uvec4(greaterThan(keys[i / 4] + uvec4(lessThan(i + uvec4(0, 1, 2, 3), uvec4(e))), uvec4(own)));
  return before.x + before.y + before.z + before.w;
}

// Chooses the experts of token `t`; all threads of a group.
void route(uint t) {
  logits = t * p.experts;
  softmax_parts();
  for (uint e = gl_LocalInvocationIndex; e < (p.experts + 3) / 4 * 4; e += GROUP)
    keys[e / 4][e % 4] = e < p.experts ? score_key(e) : 0;
  for (uint j = gl_LocalInvocationIndex; j < p.used; j += GROUP) chosen[j] = 0;  // where too few can be
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
