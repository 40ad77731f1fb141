#include "engine/write/text.h"

#include <algorithm>
#include <utility>

namespace greta {

DeviceSampling device_sampling(const SamplerSettings& settings) {
  DeviceSampling sampling = {};
  SampleParams& params = sampling.params;
  const auto& order = settings.order;
  const auto named = [&](SamplerStep step) {
    return std::find(order.begin(), order.end(), step) != order.end();
  };
  params.temperature = named(SamplerStep::Temperature) ? settings.temperature : 1;
  params.top_k = named(SamplerStep::TopK) ? settings.top_k : 0;
  params.top_p = named(SamplerStep::TopP) ? settings.top_p : 1;
  params.min_p = named(SamplerStep::MinP) ? settings.min_p : 0;
  if (named(SamplerStep::Penalties)) {
    params.repeat_penalty = settings.repeat;
    params.repeat_last_n = settings.penalty_last_n;
    sampling.penalties = {settings.frequency, settings.presence};
  }
  params.seed_low = uint32_t(settings.seed);
  params.seed_high = uint32_t(settings.seed >> 32);
  return sampling;
}

Status Text::choose(const Model& model, const float* logits, bool may_end, int32_t* token) {
  const uint32_t vocab = model.shape.vocab;
  const Span span(model.spans, SpanKind::Sample, "sample");
  if (!grammar.active()) return sampler.choose({logits, vocab}, nullptr, tokens, token);
  std::span<const uint64_t> allowed;
  {
    const Span masking(model.spans, SpanKind::Grammar, "grammar");
    GRETA_TRY(grammar.prepare(*model.tokenizer, model.tokenizer->trie(), vocab, tokens, may_end, &allowed));
  }
  *token = kNoToken;
  if (allowed.empty()) return {};
  GRETA_TRY(sampler.choose({logits, vocab}, allowed.data(), tokens, token));
  return grammar.drawn(*model.tokenizer, *token);
}

static thread_local TooLong kept_numbers;

Status with_numbers(Status failure, const TooLong& numbers) {
  kept_numbers = numbers;
  return failure;
}

TooLong take_numbers() { return std::exchange(kept_numbers, {}); }

Status check_tokens(std::span<const int32_t> tokens, uint32_t position, uint32_t context, uint32_t vocab) {
  if (tokens.empty()) return fail(Code::Argument, "no tokens to feed");
  // The count is checked before any token is read, since a wrong count may be larger than the caller's array.
  if (tokens.size() > context - position)
    return with_numbers(
        fail(Code::Full,
             "%zu tokens after %u do not fit the context of %u: shorten the prompt or ask for more",
             tokens.size(), position, context),
        {position + uint64_t(tokens.size()), context});
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || uint32_t(tokens[i]) >= vocab)
      return fail(Code::Argument, "token %zu is %d, expected 0 to %u", i, tokens[i], vocab - 1);
  return {};
}

Status forget_half(std::span<const int32_t> held, uint32_t keep, std::vector<int32_t>* instead) {
  instead->clear();
  if (keep >= held.size()) return {};
  const size_t leave = (held.size() - keep) / 2;
  if (leave == 0) return {};
  instead->assign(held.begin(), held.begin() + keep);
  instead->insert(instead->end(), held.begin() + std::ptrdiff_t(keep + leave), held.end());
  return {};
}

OnFull forgets_half(uint32_t keep) {
  return [keep](std::span<const int32_t> held, std::vector<int32_t>* instead) {
    return forget_half(held, keep, instead);
  };
}

}  // namespace greta
