#pragma once
#include "engine/executor/executor.h"

namespace greta {

// The recording of a step or of copies. Unless it is kept, the recording is abandoned and the bookkeeping
// that it changed is restored or marked as unknown. Fresh pages stay until the caller truncates.
class Executor::Attempt {
 public:
  explicit Attempt(Executor& executor) : executor_(executor), recordings_{executor.on_} {
    for (auto& copies : executor.copies_) copies.clear();
    executor.state_copies_.clear();
  }
  ~Attempt() {
    if (kept_) return;
    for (uint32_t g = 0; g < executor_.plan_.groups.count; ++g)
      executor_.pools_[g].take_back(executor_.copies_[g]);
    if (executor_.states_) executor_.states_->take_back(executor_.state_copies_);
    executor_.forget_uploads();
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  void keep() { kept_ = recordings_.kept = true; }

  // Submits a step of the layer that drafts tokens, whose rows have outputs of this kind, and keeps it. Where
  // they draw, there may be more `steps`, each of which goes on from the tokens that the one before has drawn
  // in all of its rows.
  Status submit_head(std::span<const HeadRow> rows, Output output, uint32_t steps, uint32_t* flight);
  // Submits what makes a state anew, which stands where the replay begins, and keeps it.
  Status submit_replay(const Replay& replay);

 private:
  Status upload_greedy(std::span<const Row> rows, const Planned& plan);

  Executor& executor_;
  Recordings recordings_;
  bool kept_ = false;
};

}  // namespace greta
