#include "engine/write/steps.h"

#include <algorithm>
#include <utility>

#include "engine/write/model_draft.h"

namespace greta {

Steps::Steps(Executor& executor, Owner& owner, Thrown thrown, size_t texts, uint64_t (*now)())
    : executor_(executor), owner_(owner), thrown_(thrown), ahead_(executor.runs_ahead()), now_(now) {
  for (std::vector<Part>* list : {&parts_, &batch_, &under_way_.parts, &next_.parts}) list->reserve(texts);
  rows_.reserve(executor.plan().pass_tokens);
}

// ---- filling --------------------------------------------------------------------------------------

void Steps::begin() {
  parts_.clear();
  const uint32_t rows = executor_.plan().step_tokens;
  left_ = {executor_.plan().pass_tokens, executor_.max_outputs(rows), std::min(kGuessedRows, rows),
           executor_.max_hidden(rows)};
}

// Guesses are verified only in steps of few rows, which cost little more than a step of one.
Writing::Room Steps::room(size_t texts) const {
  Writing::Room room = left_;
  room.guesses -= uint32_t(std::min<size_t>(room.guesses, texts));
  return room;
}

void Steps::add(const Part& part) {
  parts_.push_back(part);
  left_.rows -= part.count;
  left_.choices -= part.choices();
  left_.guesses -= part.guesses;
  left_.hidden -= part.hidden;
}

void Steps::forget(const Writing& writing) {
  for (std::vector<Part>* list : {&parts_, &batch_, &under_way_.parts, &next_.parts})
    for (Part& part : *list)
      if (part.writing == &writing) part.writing = nullptr;
}

// ---- running --------------------------------------------------------------------------------------

void Steps::run() {
  for (const Part::Kind kind : {Part::Kind::Draws, Part::Kind::Scores, Part::Kind::Pools}) {
    batch_.clear();
    for (const Part& part : parts_) {
      if (part.kind != kind) continue;
      if (part.live() && part.writing->goes_alone())
        run({&part, 1});
      else
        batch_.push_back(part);
    }
    if (!batch_.empty()) run(batch_);
  }
}

void Steps::run(std::span<const Part> parts) {
  const Status status = attempt([&] { return submit(parts); });
  if (status.ok()) return;
  const bool one = parts.size() == 1;
  if (one && parts[0].live() && lost_state(parts[0]) && parts[0].writing->goes_alone())
    return refuse(*parts[0].writing, status);
  const bool collected = collect();  // the step may have been short of what that one held
  if (((collected || !one) && send_back(parts)) || collected) return run(parts);
  if (one) {
    if (parts[0].live()) refuse(*parts[0].writing, status);
    return;
  }
  run(parts.first(parts.size() / 2));
  run(parts.subspan(parts.size() / 2));
}

bool Steps::lost_state(const Part& part) const {
  return !executor_.goes_on(part.writing->sequence(), part.begin);
}

// Returns false if no text has lost its state.
bool Steps::send_back(std::span<const Part> parts) {
  bool any = false;
  for (const Part& part : parts) {
    if (!part.live() || !lost_state(part)) continue;
    part.writing->go_back(part, executor_);
    any = true;
  }
  return any;
}

// Ends a text whose step cannot be submitted. It, or the executor's opener, may have stopped the compiling of
// kernels.
void Steps::refuse(Writing& writing, Status status) {
  act_for(writing,
          [&] { return status.code == Code::Cancelled ? writing.end(StopReason::Cancelled) : status; });
}

// Submits a step, and collects the one before.
Status Steps::submit(std::span<const Part> parts) {
  rows_.clear();
  next_.parts.clear();
  for (const Part& part : parts) {
    if (!part.live()) continue;  // it has ended since the step was filled
    next_.parts.push_back(part);
    part.writing->add_rows(part, &rows_);
  }
  if (rows_.empty()) return {};
  if (executor_.has_head()) (void)guarded([&] { return feed_waiting(next_.parts); });
  next_.begun_ns = now_();
  GRETA_TRY(executor_.submit(rows_, &next_.flight));
  next_.number = executor_.submitted();
  next_.rows = uint32_t(rows_.size());
  for (const Part& part : next_.parts) part.writing->submitted(part);
  collect();
  std::swap(under_way_, next_);
  any_under_way_ = true;
  const uint32_t most = executor_.has_head() ? Executor::kWaitingStates : ~0u;
  const auto waits = [&](const Part& part) {
    return part.on_host || part.hidden || part.count > most || (part.writing && part.writing->guessing());
  };
  const auto gives = [](const Part& part) { return part.outputs > 0; };
  const bool ahead =
      ahead_ || turns_ || (executor_.overlaps_prompts() && std::ranges::none_of(under_way_.parts, gives));
  if (!ahead || std::ranges::any_of(under_way_.parts, waits)) collect();
  return {};
}

bool Steps::collect() {
  if (!any_under_way_) return false;
  any_under_way_ = false;
  const Status waited = attempt([&] { return executor_.wait(under_way_.flight); });
  const uint64_t now = now_();
  owner_.ran(under_way_.rows, now - std::max(under_way_.begun_ns, collected_ns_));
  collected_ns_ = now;
  const float* outputs = executor_.logits();
  for (const Part& part : under_way_.parts) {
    const float* own = outputs;
    outputs += uint64_t(part.hidden) * executor_.model().shape.width +
               uint64_t(part.choices()) * executor_.model().shape.vocab;
    if (!part.live()) continue;
    act_for(*part.writing, [&] { return waited.ok() ? part.writing->finish(part, executor_, own) : waited; });
  }
  for (const Part& part : under_way_.parts)
    if (part.writing) part.writing->deliver();
  if (executor_.has_head() && waited.ok()) feed_head();
  return true;
}

// Gives the rows of the step that has ended to the layer that drafts tokens, also those of texts that want no
// guesses, since others may go on from their pages.
void Steps::feed_head() {
  head_parts_.clear();
  head_texts_.clear();
  uint32_t row = 0;
  for (const Part& part : under_way_.parts) {
    const uint32_t first = std::exchange(row, row + part.count);
    if (!part.writing || part.writing->sequence() == ~0u) continue;
    head_parts_.push_back(part.writing->head_part(part, first));
    head_texts_.push_back(part.writing);
  }
  const Status fed = guarded([&] { return executor_.feed_head(under_way_.number, head_parts_, &guesses_); });
  for (size_t i = 0; i < head_texts_.size(); ++i)
    if (fed.ok())
      head_texts_[i]->take_guesses(std::move(guesses_[i]));
    else if (head_texts_[i]->guessing())
      head_texts_[i]->stop_draft(fed);
}

Status Steps::ask_models() {
  std::vector<ModelAsk> asks;
  uint32_t left = room(asking_.size()).guesses;
  for (Writing* text : asking_)
    if (ModelAsk ask{}; text->asks_model(left, &ask)) {
      asks.push_back(ask);
      left -= ask.most;
    }
  if (asks.size() > 1) ModelDraft::guess_together(asks);
  return {};
}

// Many rows would take the places of hidden states that wait for the layer that drafts tokens.
Status Steps::feed_waiting(std::span<const Part> parts) {
  head_parts_.clear();
  for (const Part& part : parts) {
    if (part.count <= Executor::kWaitingStates) continue;
    Executor::HeadPart waiting = part.writing->head_part(part, 0);
    waiting.count = waiting.depth = 0;
    head_parts_.push_back(waiting);
  }
  return head_parts_.empty() ? Status{} : executor_.feed_head(~0ull, head_parts_, nullptr);
}

}  // namespace greta
