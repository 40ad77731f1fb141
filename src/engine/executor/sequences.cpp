// The states of recurrent layers: whose they are, and what steps make of them.
#include <bitset>
#include <cstring>

#include "engine/executor/executor.h"

namespace greta {

Slice Executor::state_of(uint32_t layer, uint32_t state) const {
  const Slice& states = cache_of(layer).states;
  const uint64_t bytes = model_.shape.recurrence.stride() * sizeof(float);
  return {states.buffer, states.offset + state * bytes, bytes};
}

// There are enough states if checkpoints and the prefix cache give theirs up. A state that a checkpoint or
// another sequence has as well is copied before the step.
Status Executor::reserve_states(std::span<const PagePool::Want> wants) {
  if (!states_) return {};
  std::vector<PagePool::Want> one_of_each;
  for (const PagePool::Want& want : wants) one_of_each.push_back({want.sequence, 0, 1});
  return states_->reserve(one_of_each, &state_copies_, [this] { return make_state_room(); });
}

bool Executor::free_state() {
  while (states_->free_pages() == 0)
    if (!make_state_room()) return false;
  return true;
}

void Executor::set_state(uint32_t sequence, uint32_t state, uint32_t position) {
  states_->set_seen(sequence, 1, {&state, 1});
  forget_inputs(sequence);
  state_ends_[sequence] = position;
}

// Fails unless each sequence of the step has its rows together and goes on where its state ends.
Status Executor::check_runs() const {
  if (!states_) return {};
  std::bitset<kMaxStepSequences> seen;
  for (const PagePool::Want& want : wants_) {
    if (seen[want.sequence])
      return fail(Code::Argument, "the rows of sequence %u do not stand together in the step", want.sequence);
    seen.set(want.sequence);
    if (want.begin && want.begin != state_ends_[want.sequence])
      return fail(Code::Argument, "a step at position %u of sequence %u, whose state ends at %u", want.begin,
                  want.sequence, state_ends_[want.sequence]);
  }
  return {};
}

// Notes what the step makes of states. It stands before the submission: where that fails, nobody goes on from
// a state of which it is not known whether the step has changed it.
void Executor::move_states() {
  if (states_)
    for (const PagePool::Want& want : wants_) state_ends_[want.sequence] = want.end;
}

// Uploads which rows belong to which sequence, where layers are recurrent.
Status Executor::upload_runs(std::span<const Row> rows) {
  if (!states_) return {};
  StepRuns runs = {};
  for (uint32_t t = 0; t < rows.size(); ++t) {
    if (t == 0 || rows[t].sequence != rows[t - 1].sequence)
      runs.run[runs.count++] = {t, 0, states_->table(rows[t].sequence)[0]};
    ++runs.run[runs.count - 1].count;
    runs.run_of[t] = runs.count - 1;
  }
  return upload_runs(runs);
}

Status Executor::upload_runs(const StepRuns& runs) {
  if (runs_there_ && !memcmp(&runs, &*runs_there_, sizeof runs)) return {};
  runs_there_.reset();  // stays so if the copy fails
  for (OnDevice& on : on_) {
    const DeviceMemory& staged = on.staged[flight_].runs;
    memcpy(staged.buffer().mapped, &runs, sizeof runs);
    GRETA_TRY(on.stream->copy(on.runs.slice(0, sizeof runs), staged.slice(0, sizeof runs)));
  }
  runs_there_ = runs;
  return {};
}

}  // namespace greta
