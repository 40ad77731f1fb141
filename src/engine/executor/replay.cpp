// States that wrong guesses have gone into. The state before a step with guesses is kept, and so is what the
// step's rows make of it. For the rows that were right the state is made anew from these, by convolutions and
// scans alone: no row is read by the model again.
#include <algorithm>

#include "engine/executor/attempt.h"

namespace greta {

// Gives nothing unless the last step has rows of the sequence before and behind `position`, a checkpoint lies
// where they begin, and no step has gone on from them.
std::optional<Executor::Replay> Executor::find_replay(uint32_t sequence, uint32_t position) const {
  if (!states_) return {};
  const auto first = std::ranges::find(kept_inputs_, sequence, &Row::sequence);
  if (first == kept_inputs_.end() || position <= first->position) return {};
  const auto count = std::ranges::count(kept_inputs_, sequence, &Row::sequence);
  const uint32_t begin = first->position, end = begin + uint32_t(count);
  if (position >= end || state_ends_[sequence] != end || checkpoints_->last(sequence, position) != begin)
    return {};
  return Replay{sequence, begin, position, uint32_t(first - kept_inputs_.begin())};
}

// The sequence has another text now. The rows of others keep their places.
void Executor::forget_inputs(uint32_t sequence) {
  for (Row& row : kept_inputs_)
    if (row.sequence == sequence) row.sequence = ~0u;
}

// Makes a state that stands behind `position` end there. Where that fails before it was submitted, there is a
// checkpoint still.
bool Executor::replay(uint32_t sequence, uint32_t position) {
  const std::optional<Replay> found = find_replay(sequence, position);
  if (!found || found->begin == 0) return false;
  checkpoints_->resume(sequence, found->begin);
  checkpoints_->drop_for_guesses(sequence);  // the state need not be copied if nobody else has it
  state_ends_[sequence] = found->begin;
  const Status made = guarded([&] { return Attempt(*this).submit_replay(*found); });
  if (made.ok()) return true;
  keep_checkpoint(sequence, found->begin);
  clear_error_text();
  return false;
}

Status Executor::Attempt::submit_replay(const Replay& replay) {
  Executor& e = executor_;
  const uint32_t count = replay.end - replay.begin;
  StepKey key{token_bucket(uint32_t(e.kept_inputs_.size())), 0, 0};
  key.replay = true;
  const Planned* plan = nullptr;
  e.wants_.assign(1, {replay.sequence, replay.begin, replay.end});
  GRETA_TRY(e.plan_for(key, &plan));
  GRETA_TRY(e.reserve_states(e.wants_));
  GRETA_TRY(e.land(e.flight_));
  GRETA_TRY(e.barrier());
  GRETA_TRY(e.copy_pages());
  // The rows have the places in the step that they had, and no outputs.
  std::vector<Row> rows = e.kept_inputs_;
  for (Row& row : rows) row.output = Output::None;
  e.write_rows(rows);
  GRETA_TRY(e.upload_rows(*plan, 0));
  StepRuns runs = {};
  runs.count = 1;
  runs.run[0] = {replay.row, count, e.states_->table(replay.sequence)[0]};
  GRETA_TRY(e.upload_runs(runs));
  Flight& flight = e.flights_[e.flight_];
  flight.clock_set.reset();
  if (e.model_.spans.on()) flight.step = {++e.steps_, now_ns(), count, 0, replay.end};
  flight.name = "replay";
  const std::span<const Segment> segments = e.segments(key);
  for (size_t i = 0; i < segments.size(); ++i)
    if (const GretaGraph& graph = *plan->graphs[i]; !graph.commands().empty())
      GRETA_TRY(on_device(e.model_, segments[i].device, graph.run(*e.on_[segments[i].device].stream)));
  e.move_states();
  GRETA_TRY(e.ends().stream->signal(flight.done));
  for (uint32_t d = 0; d < e.on_.size(); ++d) GRETA_TRY(on_device(e.model_, d, e.on_[d].stream->submit()));
  keep();
  e.row_counts_.replayed += count;
  flight.under_way = true;
  flight.outcome = Code::Ok;
  e.flight_ = (e.flight_ + 1) % kFlights;
  // What was uploaded to devices that the next steps do not wait for must not pile up.
  for (uint32_t d = 0; d < e.on_.size(); ++d)
    if (d != e.model_.placement.output()) GRETA_TRY(on_device(e.model_, d, e.on_[d].stream->wait()));
  return {};
}

}  // namespace greta
