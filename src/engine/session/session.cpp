#include "engine/session/session.h"

#include <algorithm>
#include <cstring>

namespace greta {

Session::Session(std::shared_ptr<Executor> executor) : executor_(std::move(executor)) {
  rows_.reserve(executor_->plan().pass_tokens);
  text_.tokens.reserve(size_t(executor_->plan().context) + 1);
}

Status Session::open(std::shared_ptr<Executor> executor, std::unique_ptr<Session>* out) {
  std::unique_ptr<Session> session(new Session(std::move(executor)));
  GRETA_TRY(session->executor_->acquire_sequence(&session->text_.sequence));
  GRETA_TRY(session->set_sampling({}));
  *out = std::move(session);
  return {};
}

Session::~Session() {
  if (text_.sequence != ~0u) executor_->release_sequence(text_.sequence);
}

Status Session::fork(std::unique_ptr<Session>* out) {
  std::unique_ptr<Session> child;
  GRETA_TRY(open(executor_, &child));
  executor_->fork_sequence(text_.sequence, child->text_.sequence, text_.fed);
  child->text_.feed(tokens());
  child->text_.fed = text_.fed;
  child->behind_ = behind_;
  GRETA_TRY(child->set_sampling(sampling()));
  child->text_.sampler = text_.sampler;
  child->text_.grammar = text_.grammar;
  GRETA_TRY(child->set_draft({draft_.kind, draft_.depth, draft_.guess_tokens, draft_.executor, {}}));
  child->fed_with_ = fed_with_;
  child->adapters_since_ = adapters_since_;
  if (const auto& adapters = executor_->adapters(text_.sequence)) {
    std::shared_ptr<const AdapterList> own;  // that counts as another user
    GRETA_TRY(AdapterList::make(adapters->uses(), &own));
    GRETA_TRY(executor_->set_adapters(child->text_.sequence, std::move(own)));
  }
  *out = std::move(child);
  return {};
}

Status Session::truncate(uint32_t position) {
  if (position > this->position())
    return fail(Code::Argument, "cannot truncate to %u, the session holds %u tokens", position,
                this->position());
  take_back(position);
  // Its pages are taken again before others can take them. If there are none, reading the tokens fails.
  if (behind_) (void)guarded([&] { return executor_->reserve(text_.sequence, text_.fed, position); });
  return {};
}

Status Session::set_sampling(SamplerSettings settings) {
  GRETA_TRY(check_sampling(settings));
  const DeviceSampling sampling = device_sampling(settings);
  text_.sampler.set(std::move(settings));
  executor_->set_sampling(text_.sequence, sampling);
  return {};
}

Status Session::set_adapters(std::shared_ptr<const AdapterList> adapters) {
  const std::optional<uint64_t> before = adapters_of_all();
  GRETA_TRY(executor_->set_adapters(text_.sequence, std::move(adapters)));
  fed_with_ = before;
  adapters_since_ = position();
  return {};
}

std::optional<uint64_t> Session::adapters_of_all() const {
  const uint64_t now = identity_of(executor_->adapters(text_.sequence));
  if (adapters_since_ == 0) return now;
  return position() == adapters_since_ || fed_with_ == now ? fed_with_ : std::nullopt;
}

Status Session::sample(const float* logits, bool may_end, int32_t* token) {
  if (position() == 0) return fail(Code::Argument, "there is no token yet that another could follow");
  return text_.choose(executor_->model(), logits, may_end, token);
}

Status Session::check(std::span<const int32_t> tokens) const {
  return check_tokens(tokens, position(), context(), executor_->model().shape.vocab);
}

void Session::take_back(uint32_t position) {
  const uint32_t there = executor_->truncate(text_.sequence, std::min(position, text_.fed));
  text_.take_back(position);
  text_.fed = there;
  behind_ = position - there;
  adapters_since_ = std::min(adapters_since_, position);
}

// Gives the layer that drafts tokens the rows of the last step, or without any, those that wait before
// `begin`. If it fails the layer has not read these, and does not guess what comes behind them.
void Session::feed_head(uint32_t begin, uint32_t count) {
  if (!executor_->has_head()) return;
  const Executor::HeadPart part{text_.sequence, begin, count, 0, text_.tokens, 0};
  const uint64_t step = count ? executor_->submitted() : ~uint64_t(0);
  (void)guarded([&] { return executor_->feed_head(step, {&part, 1}, nullptr); });
}

Status Session::catch_up() {
  if (behind_)
    executor_->model().log(LogLevel::Debug, "%u tokens are read again from position %u, the last checkpoint",
                           behind_, text_.fed);
  while (behind_) {
    if (take_cancel()) return fail(Code::Cancelled, "stopped with %u tokens to be read again", behind_);
    const uint32_t count = std::min(executor_->plan().step_tokens, behind_);
    rows_.clear();
    for (uint32_t at = text_.fed; at < text_.fed + count; ++at)
      rows_.push_back({uint32_t(text_.tokens[at]), at, text_.sequence, Executor::Output::None});
    feed_head(text_.fed, 0);
    GRETA_TRY(executor_->step(rows_));
    feed_head(text_.fed, count);
    text_.fed += count;
    behind_ -= count;
  }
  return {};
}

// Runs the rows. Several devices work on a prompt at the same time if its pieces are not waited for.
Status Session::run_piece(bool last) {
  const auto has_output = [](const Executor::Row& row) { return row.output != Executor::Output::None; };
  if (last || !executor_->overlaps_prompts() || std::ranges::any_of(rows_, has_output))
    return executor_->step(rows_);
  uint32_t flight = 0;
  return executor_->submit(rows_, &flight);
}

template <class OutputOf, class Taken>
Status Session::feed(std::span<const int32_t> tokens, uint32_t most, OutputOf output, Taken taken) {
  take_cancel();
  GRETA_TRY(catch_up());
  Executor& executor = *executor_;
  const uint32_t begin = position();
  if (tokens.size() > 1) executor.keep_checkpoint(text_.sequence, begin);
  Undo undo{this, begin};
  GRETA_TRY(executor.reserve(text_.sequence, begin, begin + uint32_t(tokens.size())));
  for (size_t done = 0; done < tokens.size();) {
    undo.to = position();
    if (done && take_cancel())
      return fail(Code::Cancelled, "stopped after %zu of %zu tokens", done, tokens.size());
    undo.to = begin;
    const size_t count = std::min<size_t>(most, tokens.size() - done);
    rows_.clear();
    for (size_t i = 0; i < count; ++i)
      rows_.push_back(
          {uint32_t(tokens[done + i]), position() + uint32_t(i), text_.sequence, output(done + i)});
    if (count > Executor::kWaitingStates) feed_head(text_.fed, 0);
    const Status status = run_piece(done + count == tokens.size());
    if (status.code == Code::Cancelled) undo.to = position();
    GRETA_TRY(status);
    GRETA_TRY(taken(done, count));
    text_.feed(tokens.subspan(done, count));
    feed_head(text_.fed - uint32_t(count), uint32_t(count));
    done += count;
  }
  undo.keep();
  if (tokens.size() > 1) executor.keep_checkpoint(text_.sequence, position());
  return {};
}

Status Session::eval(std::span<const int32_t> tokens, OutputRows rows, const float** logits) {
  GRETA_TRY(check(tokens));
  const Executor& executor = *executor_;
  const uint64_t vocab = executor.model().shape.vocab;
  const bool all = rows == OutputRows::All, last = rows == OutputRows::Last;
  uint32_t most = executor.plan().pass_tokens;
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
  const uint32_t width = executor.model().shape.width, begin = position(),
                 steps = executor.plan().step_tokens;
  PooledText text(options, width, begin, uint32_t(tokens.size()));
  std::vector<float> embedding;
  const auto output = [&](size_t i) {
    return text.wants(begin + uint32_t(i)) ? Executor::Output::Hidden : Executor::Output::None;
  };
  const bool every = text.wanted(begin, uint32_t(tokens.size())) > 1;
  const uint32_t most = every ? executor.max_hidden(steps) : steps;
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
  GRETA_TRY(catch_up());
  Undo undo{this, position()};
  rows_.clear();
  for (size_t i = 0; i < tokens.size(); ++i)
    rows_.push_back({uint32_t(tokens[i]), position() + uint32_t(i), text_.sequence, Executor::Output::None});
  rows_.back().output = Executor::Output::Draw;
  GRETA_TRY(executor_->profile(rows_, on_stage, user));
  text_.feed(tokens);
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
  for (const Item& item : items) GRETA_TRY(item.session->catch_up());
  Session& first = *items[0].session;
  std::vector<Executor::Row> rows;
  rows.reserve(kMaxStepTokens);
  std::vector<Undo> undo;
  undo.reserve(items.size());
  for (const Item& item : items) undo.emplace_back(item.session, item.session->position());
  for (const Item& item : items) {
    const uint32_t begin = item.session->position();
    GRETA_TRY(executor.reserve(item.session->text_.sequence, begin, begin + uint32_t(item.tokens.size())));
    if (item.tokens.size() > 1) executor.keep_checkpoint(item.session->text_.sequence, begin);
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
      rows.push_back({uint32_t(items[i].tokens[t]), session.position(), session.text_.sequence,
                      last ? Executor::Output::Logits : Executor::Output::None});
      session.text_.feed(items[i].tokens.subspan(t, 1));
      if (last) outputs.push_back(i);
      if (rows.size() < executor.plan().step_tokens && outputs.size() < executor.options().output_rows)
        continue;
      GRETA_TRY(run());
    }
  }
  if (!rows.empty()) GRETA_TRY(run());
  for (Undo& each : undo) each.keep();
  for (const Item& item : items)
    if (item.tokens.size() > 1)
      executor.keep_checkpoint(item.session->text_.sequence, item.session->position());
  return {};
}

}  // namespace greta
