// States that wrong guesses have gone into. The state before a step with guesses is kept, and so is what the
// step's rows make of it. For the rows that were right the state is made anew from these, by convolutions and
// scans alone: no row is read by the model again.
#include "engine/executor/attempt.h"

namespace greta {

// Makes a state that stands behind `position` end there. Where that fails before it was submitted, there is a
// checkpoint still.
bool Executor::replay(uint32_t sequence, uint32_t position) {
  const std::optional<Sequences::Replay> found = sequences_.find_replay(sequence, position);
  if (!found || found->begin == 0) return false;
  sequences_.begin_replay(*found);
  const Status made = guarded([&] { return submit_replay(*found); });
  if (made.ok()) return true;
  sequences_.keep_checkpoint(sequence, found->begin);
  sequences_.lose_state(sequence);
  clear_error_text();
  return false;
}

// Submits what makes a state anew, which stands where the replay begins.
Status Executor::submit_replay(const Sequences::Replay& replay) {
  Attempt attempt(*this);
  const uint32_t count = replay.end - replay.begin;
  // The rows have the places in the step that they had, and no outputs.
  std::vector<Row> rows(sequences_.kept_inputs().begin(), sequences_.kept_inputs().end());
  for (Row& row : rows) row.output = Output::None;
  StepKey key{token_bucket(uint32_t(rows.size())), 0, 0};
  key.replay = true;
  const PlannedStep* plan = nullptr;
  sequences_.set_wants({{replay.sequence, replay.begin, replay.end}});
  GRETA_TRY(plans_.find(key, &plan));
  GRETA_TRY(sequences_.reserve_states(sequences_.wants()));
  GRETA_TRY(flights_.land(flights_.next()));
  GRETA_TRY(on_.barrier());
  GRETA_TRY(cache_.copy_shared());
  upload_.write_rows(rows);
  GRETA_TRY(upload_.rows(plan->lone, 0));
  StepRuns runs = {};
  runs.count = 1;
  runs.run[0] = {replay.row, count, sequences_.state(replay.sequence)};
  GRETA_TRY(upload_.runs(runs));
  flights_.tell("replay", {0, now_ns(), count, 0, replay.end});
  const std::span<const Segment> segments = plans_.segments(key);
  for (size_t i = 0; i < segments.size(); ++i)
    if (const GretaGraph& graph = *plan->graphs[i]; !graph.commands().empty())
      GRETA_TRY(on_device(model_, segments[i].device, graph.run(*on_[segments[i].device].stream)));
  sequences_.move_states();
  GRETA_TRY(flights_.signal_end(*on_.ends().stream));
  for (uint32_t d = 0; d < on_.size(); ++d) GRETA_TRY(on_device(model_, d, on_[d].stream->submit()));
  attempt.keep();
  row_counts_.replayed += count;
  flights_.take_off();
  // What was uploaded to devices that the next steps do not wait for must not pile up.
  for (uint32_t d = 0; d < on_.size(); ++d)
    if (d != model_.placement.output()) GRETA_TRY(on_device(model_, d, on_[d].stream->wait()));
  return {};
}

}  // namespace greta
