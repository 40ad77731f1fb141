#pragma once
#include "engine/executor/executor.h"

namespace greta {

// The recording of a step or of copies. Unless it is kept, the recording is abandoned and the bookkeeping
// that it changed is restored or marked as unknown. Fresh pages stay until the caller truncates.
class Executor::Attempt {
 public:
  explicit Attempt(Executor& executor) : executor_(executor), recordings_{executor.on_} {
    executor.sequences_.clear_copies();
  }
  ~Attempt() {
    if (recordings_.kept) return;
    executor_.sequences_.take_back_copies();
    executor_.upload_.forget();
    executor_.adapters_.forget_uploads();
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;
  void keep() { recordings_.kept = true; }

 private:
  Executor& executor_;
  ExecutorDevices::Recordings recordings_;
};

}  // namespace greta
