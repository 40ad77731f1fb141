// Finds two conflicting accesses to overlapping bytes without a barrier between them: a read after a write, a
// write after a read, or a write after a write.
#pragma once
#include <vector>

#include "runtime/checked_memory.h"

namespace greta {

class Hazards {
 public:
  Status check(const Work& work, std::span<const BufferUse> uses) const;
  void add(const Work& work, std::span<const BufferUse> uses);
  void barrier() { past_.clear(); }

  // The host has waited, so what ran before can no longer overlap. Accesses of captured plans are kept all
  // the same and compared with the next plan: steps may overlap, so a plan must begin with a barrier.
  void waited();

 private:
  struct Past {
    Work work;
    BufferUse use;
    bool waited = false;
  };
  std::vector<Past> past_;  // since the last barrier
};

}  // namespace greta
