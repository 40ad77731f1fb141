// The times of a step's kernels, each by itself, added up by kernel and part of the step.
#pragma once
#include <vector>

#include "graph/graph.h"

namespace greta {

class StepProfile {
 public:
  // The live rows of the step, those with an output, and the positions that its last row sees: what launches
  // cost is told by these.
  struct Sizes {
    uint32_t tokens, outputs, depth;
  };
  struct Stage {
    const char* kernel;
    const char* part;  // of the step, such as "attention"
    uint32_t launches;
    uint64_t ns, bytes, flops;  // of all its launches together; `bytes` are those that must move
  };
  explicit StepProfile(const Sizes& sizes) : sizes_(sizes) {}
  void add(const GretaGraph& graph, const std::vector<uint64_t>& ns);  // of each of its commands
  const std::vector<Stage>& stages() const { return stages_; }         // in the order of first launches

 private:
  Sizes sizes_;
  std::vector<Stage> stages_;
};

}  // namespace greta
