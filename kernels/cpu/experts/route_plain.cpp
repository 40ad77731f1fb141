// route_plain: chooses the experts of each token.
//   ids[t][j], weights[t][j] = the j-th best expert of token t by logits[t], and its weight
//   grid    (tokens)
//   group   one token. Experts, and groups of them, are found one after the other, each the next in the order
//           (larger score, then lower index)
//   scratch none: nothing is stored or sorted
//   moves   4 bytes for each expert, read once for each choice; 8 bytes for each choice
// The argument block is RouteBlock in kernels/abi/ops.h.
#include "kernels/cpu/math.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/step.h"

namespace {

// A token's logits and what turns them into probabilities.
struct Token {
  const RouteBlock& b;
  const float* logits;
  float max, sum;  // of softmax

  Token(const RouteBlock& block, uint32_t t)
      : b(block), logits((const float*)block.logits + uint64_t(t) * block.experts), max(logits[0]), sum(0) {
    for (uint32_t e = 1; e < b.experts; ++e) max = logits[e] > max || max != max ? logits[e] : max;
    for (uint32_t e = 0; e < b.experts; ++e) sum += exp_f32(logits[e] - max);
  }
  float probability(uint32_t e) const {
    return b.gating == kGatingSigmoid ? 1.f / (1.f + exp_f32(-logits[e])) : exp_f32(logits[e] - max) / sum;
  }
  // What experts are chosen by. Without a bias the logits themselves: probabilities of 0 would tie.
  float score(uint32_t e) const { return b.bias ? probability(e) + ((const float*)b.bias)[e] : logits[e]; }
};

constexpr uint32_t kNone = ~0u;

// The first of `count` in order after `last` (kNone: the first of all), by score(i), among those that
// allowed(i) lets in. With NaN among the scores none may follow: then kNone.
template <class Score, class Allowed>
uint32_t next_best(uint32_t count, uint32_t last, Score score, Allowed allowed) {
  uint32_t best = kNone;
  float best_score = 0;
  const float last_score = last == kNone ? 0 : score(last);
  for (uint32_t i = 0; i < count; ++i) {
    if (!allowed(i)) continue;
    const float s = score(i);
    const bool after = last == kNone || s < last_score || (s == last_score && i > last);
    if (s == s && after && (best == kNone || s > best_score)) best = i, best_score = s;
  }
  return best;
}

// How good a group is: its best expert, or with a bias the sum of its two best.
float group_score(const Token& token, uint32_t group, uint32_t size) {
  const auto score = [&](uint32_t i) { return token.score(group * size + i); };
  const auto any = [](uint32_t) { return true; };
  const uint32_t first = next_best(size, kNone, score, any);
  if (first == kNone) return -__builtin_inff();
  const uint32_t second = token.b.bias ? next_best(size, first, score, any) : kNone;
  return score(first) + (second == kNone ? 0.f : score(second));
}

// One bit for each group that experts may be chosen from.
uint64_t choose_groups(const Token& token) {
  const RouteBlock& b = token.b;
  if (b.groups_used == b.groups) return ~0ull;
  float scores[kMaxExpertGroups];
  for (uint32_t g = 0; g < b.groups; ++g) scores[g] = group_score(token, g, b.experts / b.groups);
  uint64_t chosen = 0;
  for (uint32_t i = 0, last = kNone; i < b.groups_used; ++i) {
    last = next_best(b.groups, last, [&](uint32_t g) { return scores[g]; }, [](uint32_t) { return true; });
    if (last == kNone) break;
    chosen |= 1ull << last;
  }
  return chosen;
}

void route(const RouteBlock& b, uint32_t t) {
  const Token token(b, t);
  uint32_t* ids = (uint32_t*)b.ids + uint64_t(t) * b.used;
  float* weights = (float*)b.weights + uint64_t(t) * b.used;
  const uint64_t groups = choose_groups(token);
  const uint32_t size = b.experts / b.groups;
  const auto score = [&](uint32_t e) { return token.score(e); };
  const auto allowed = [&](uint32_t e) { return (groups >> (e / size) & 1) != 0; };
  float chosen = 0;
  for (uint32_t j = 0, last = kNone; j < b.used; ++j) {
    last = j && last == kNone ? kNone : next_best(b.experts, last, score, allowed);
    ids[j] = last == kNone ? 0 : last;  // at least an expert
    weights[j] = token.probability(ids[j]);
    chosen += weights[j];
  }
  for (uint32_t j = 0; j < b.used; ++j)
    weights[j] = (b.normalise ? weights[j] / chosen : weights[j]) * b.scale;
}

}  // namespace

extern "C" void KERNEL_NAME(const void* block, uint32_t first_group, uint32_t group_count, Scratch*) {
  const RouteBlock& b = *(const RouteBlock*)block;
  const uint32_t live = live_rows(step_of(b.step), kRowsTokens);
  for (uint32_t t = first_group; t < first_group + group_count && t < live; ++t) route(b, t);
}
