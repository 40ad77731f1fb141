// The chain of a captured graph (kernels/abi/chain.h): which launches follow each other by counters instead
// of barriers.
#pragma once
#include <vector>

#include "runtime/device.h"

namespace greta {

class VulkanChain {
 public:
  static constexpr uint32_t kCells = 1024;
  static constexpr uint64_t kBytes = kCells * 64;  // no more can go into a command

  // A stage begins with a launch of `groups` groups that can count themselves or cannot. True if these wait
  // for the stage before; where they do not, or `ordered` says that a barrier is needed anyhow, one has to be
  // recorded.
  bool next_stage(bool counts, uint64_t groups, bool ordered);
  // The cell of the next launch of the stage; 0 if it has none, and waits for nothing.
  uint64_t link(bool counts, uint64_t groups);
  std::vector<uint8_t> cells(uint64_t stuck) const;  // as they are before the first replay

  Buffer memory;          // the cells
  uint32_t replays = 0;   // since they were filled
  uint64_t abandons = 0;  // of the stream, until then

 private:
  uint32_t last_ = 0;   // cell that is in use
  uint32_t stage_ = 0;  // cell of the stage that is being recorded; 0: none
  bool whole_ = false;  // all launches of that stage count themselves
  uint32_t groups_[kCells] = {};
};

}  // namespace greta
