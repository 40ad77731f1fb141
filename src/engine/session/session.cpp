#include "engine/session/session.h"

#include <algorithm>
#include <cstring>

namespace greta {

Session::Session(std::shared_ptr<Executor> executor) : executor_(std::move(executor)) {
  rows_.reserve(kMaxStepTokens);
  tokens_.reserve(executor_->plan().context);
}

Status Session::open(std::shared_ptr<Executor> executor, std::unique_ptr<Session>* out) {
  std::unique_ptr<Session> session(new Session(std::move(executor)));
  GRETA_TRY(session->executor_->acquire_sequence(&session->sequence_));
  GRETA_TRY(session->set_sampling({}));
  *out = std::move(session);
  return {};
}

Session::~Session() {
  if (sequence_ != ~0u) executor_->release_sequence(sequence_);
}

Status Session::fork(std::unique_ptr<Session>* out) {
  std::unique_ptr<Session> child;
  GRETA_TRY(open(executor_, &child));
  executor_->fork_sequence(sequence_, child->sequence_, position_);
  child->position_ = position_;
  child->tokens_.assign(tokens_.begin(), tokens_.end());
  GRETA_TRY(child->set_sampling(sampling()));
  child->sampler_ = sampler_;
  child->grammar_ = grammar_;
  child->draft_tokens_ = draft_tokens_;
  *out = std::move(child);
  return {};
}

Status Session::truncate(uint32_t position) {
  if (position > position_)
    return fail(Code::Argument, "cannot truncate to %u, the session holds %u tokens", position, position_);
  take_back(position);
  return {};
}

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

Status Session::set_sampling(SamplerSettings settings) {
  GRETA_TRY(check_sampling(settings));
  const DeviceSampling sampling = device_sampling(settings);
  sampler_.set(std::move(settings));
  executor_->set_sampling(sequence_, sampling);
  return {};
}

Status choose_token(const Model& model, Sampler& sampler, GrammarState& grammar, const float* logits,
                    std::span<const int32_t> tokens, bool may_end, int32_t* token) {
  const uint32_t vocab = model.shape.vocab;
  if (!grammar.active()) return sampler.choose({logits, vocab}, nullptr, tokens, token);
  std::span<const uint64_t> allowed;
  GRETA_TRY(grammar.prepare(*model.tokenizer, model.tokenizer->trie(), vocab, tokens, may_end, &allowed));
  *token = kNoToken;
  if (allowed.empty()) return {};
  GRETA_TRY(sampler.choose({logits, vocab}, allowed.data(), tokens, token));
  return grammar.drawn(*model.tokenizer, *token);
}

Status Session::sample(const float* logits, bool may_end, int32_t* token) {
  if (position_ == 0) return fail(Code::Argument, "there is no token yet that another could follow");
  return choose_token(executor_->model(), sampler_, grammar_, logits, tokens_, may_end, token);
}

void Session::fed(std::span<const int32_t> tokens) {
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  position_ += uint32_t(tokens.size());
}

Status check_tokens(std::span<const int32_t> tokens, uint32_t position, uint32_t context, uint32_t vocab) {
  if (tokens.empty()) return fail(Code::Argument, "no tokens to feed");
  // The count is checked before any token is read, since a wrong count may be larger than the caller's array.
  if (tokens.size() > context - position)
    return fail(Code::Full,
                "%zu tokens after %u do not fit the context of %u: shorten the prompt or ask for more",
                tokens.size(), position, context);
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || uint32_t(tokens[i]) >= vocab)
      return fail(Code::Argument, "token %zu is %d, expected 0 to %u", i, tokens[i], vocab - 1);
  return {};
}

Status Session::check(std::span<const int32_t> tokens) const {
  return check_tokens(tokens, position_, context(), executor_->model().shape.vocab);
}

void Session::take_back(uint32_t position) {
  executor_->truncate(sequence_, position);
  position_ = position;
  tokens_.resize(position);
  sampler_.truncate(position);
  grammar_.truncate(position);
}

template <class OutputOf, class Taken>
Status Session::feed(std::span<const int32_t> tokens, uint32_t most, OutputOf output, Taken taken) {
  take_cancel();
  Executor& executor = *executor_;
  const uint32_t begin = position_;
  Undo undo{this, begin};
  GRETA_TRY(executor.reserve(sequence_, begin, begin + uint32_t(tokens.size())));
  for (size_t done = 0; done < tokens.size();) {
    undo.to = position_;
    if (done && take_cancel())
      return fail(Code::Cancelled, "stopped after %zu of %zu tokens", done, tokens.size());
    undo.to = begin;
    const size_t count = std::min<size_t>(most, tokens.size() - done);
    rows_.clear();
    for (size_t i = 0; i < count; ++i)
      rows_.push_back({uint32_t(tokens[done + i]), position_ + uint32_t(i), sequence_, output(done + i)});
    const Status status = executor.step(rows_);
    if (status.code == Code::Cancelled) undo.to = position_;
    GRETA_TRY(status);
    GRETA_TRY(taken(done, count));
    fed(tokens.subspan(done, count));
    done += count;
  }
  undo.keep();
  return {};
}

Status Session::eval(std::span<const int32_t> tokens, OutputRows rows, const float** logits) {
  GRETA_TRY(check(tokens));
  const Executor& executor = *executor_;
  const uint64_t vocab = executor.model().shape.vocab;
  const bool all = rows == OutputRows::All, last = rows == OutputRows::Last;
  uint32_t most = executor.plan().step_tokens;
  if (all) most = std::min(most, token_bucket(executor.options().output_rows));
  if (all) all_logits_.resize(tokens.size() * vocab);
  const auto output = [&](size_t i) {
    return all || (last && i + 1 == tokens.size()) ? Executor::Output::Logits : Executor::Output::None;
  };
  GRETA_TRY(feed(tokens, most, output, [&](size_t done, size_t count) {
    if (all) memcpy(all_logits_.data() + done * vocab, executor.logits(), count * vocab * sizeof(float));
    return Status{};
  }));
  if (logits) *logits = all ? all_logits_.data() : last ? executor.logits() : nullptr;
  return {};
}

Status Session::embed(std::span<const int32_t> tokens, const EmbedOptions& options,
                      std::span<const float>* out) {
  GRETA_TRY(check(tokens));
  const Executor& executor = *executor_;
  const uint32_t width = executor.model().shape.width, begin = position_, steps = executor.plan().step_tokens;
  PooledText text(options, width, begin, uint32_t(tokens.size()));
  std::vector<float> embedding;
  const auto output = [&](size_t i) {
    return text.wants(begin + uint32_t(i)) ? Executor::Output::Hidden : Executor::Output::None;
  };
  const uint32_t most = options.pooling == Pooling::Mean ? executor.max_hidden(steps) : steps;
  GRETA_TRY(feed(tokens, most, output, [&](size_t done, size_t count) -> Status {
    const float* state = executor.hidden();
    for (uint32_t at = begin + uint32_t(done); at < begin + uint32_t(done + count); ++at)
      if (text.wants(at)) text.add(at, std::exchange(state, state + width));
    return text.complete() && embedding.empty() ? text.finish(&embedding) : Status{};
  }));
  embedding_ = std::move(embedding);
  *out = embedding_;
  return {};
}

Status Session::profile(std::span<const int32_t> tokens,
                        void (*on_stage)(void* user, const Executor::Stage& stage), void* user) {
  const uint32_t most = executor_->plan().step_tokens;
  if (tokens.size() > most)
    return fail(Code::Argument, "a profile of %zu tokens, a step takes %u", tokens.size(), most);
  GRETA_TRY(check(tokens));
  take_cancel();
  Undo undo{this, position_};
  rows_.clear();
  for (size_t i = 0; i < tokens.size(); ++i)
    rows_.push_back({uint32_t(tokens[i]), position_ + uint32_t(i), sequence_, Executor::Output::None});
  rows_.back().output = Executor::Output::Draw;
  GRETA_TRY(executor_->profile(rows_, on_stage, user));
  fed(tokens);
  undo.keep();
  return {};
}

// Cuts the rows of all items, one item after the other, into steps. Each item's last row has logits.
Status Session::eval_batch(std::span<Item> items) {
  GRETA_TRY(check_together(items));
  Executor& executor = items[0].session->executor();
  const uint32_t vocab = executor.model().shape.vocab;
  for (size_t i = 0; i < items.size(); ++i)
    GRETA_TRY(within(items[i].session->check(items[i].tokens), "item %zu", i));
  for (const Item& item : items) item.session->take_cancel();
  Session& first = *items[0].session;
  std::vector<Executor::Row> rows;
  rows.reserve(kMaxStepTokens);
  std::vector<Undo> undo;
  undo.reserve(items.size());
  for (const Item& item : items) undo.emplace_back(item.session, item.session->position_);
  for (const Item& item : items) {
    const uint32_t begin = item.session->position_;
    GRETA_TRY(executor.reserve(item.session->sequence_, begin, begin + uint32_t(item.tokens.size())));
  }
  std::vector<size_t> outputs;  // the items whose logits this step computes
  const auto run = [&]() -> Status {
    GRETA_TRY(executor.step(rows));
    const bool all = outputs.size() == items.size();  // then they stay where the step has left them
    if (!all && !outputs.empty()) first.all_logits_.resize(items.size() * vocab);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const float* logits = executor.logits() + i * vocab;
      if (!all) {
        float* kept = first.all_logits_.data() + outputs[i] * vocab;
        memcpy(kept, logits, vocab * sizeof(float));
        logits = kept;
      }
      items[outputs[i]].logits = logits;
    }
    rows.clear();
    outputs.clear();
    return {};
  };
  for (size_t i = 0; i < items.size(); ++i) {
    Session& session = *items[i].session;
    for (size_t t = 0; t < items[i].tokens.size(); ++t) {
      const bool last = t + 1 == items[i].tokens.size();
      rows.push_back({uint32_t(items[i].tokens[t]), session.position_, session.sequence_,
                      last ? Executor::Output::Logits : Executor::Output::None});
      session.fed(items[i].tokens.subspan(t, 1));
      if (last) outputs.push_back(i);
      if (rows.size() < executor.plan().step_tokens && outputs.size() < executor.options().output_rows)
        continue;
      GRETA_TRY(run());
    }
  }
  if (!rows.empty()) GRETA_TRY(run());
  for (Undo& each : undo) each.keep();
  return {};
}

}  // namespace greta
