// Finds two conflicting accesses without a barrier between them: a read after a write, a write after
// a read, a write after a write, of overlapping bytes.
#pragma once
#include <vector>

#include "runtime/checked_memory.h"

namespace greta {

class Hazards {
 public:
  Status check(const Work& work, std::span<const BufferUse> uses) const;
  void add(const Work& work, std::span<const BufferUse> uses);
  void barrier() { past_.clear(); }

  // The host has waited: what ran can no longer overlap. What plans did is kept all the same and held
  // against the launches of the next plan, since a captured plan opens with a barrier: two steps may
  // be in flight on another device.
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
