// The chain of a captured graph: launches follow each other by counters in memory instead of barriers.
//
// A stage is a set of launches that may run side by side. Each stage has a cell. Its groups count themselves
// there when they have written, and the groups of the next stage wait until all are counted.
#pragma once
#include <vector>

#include "runtime/device.h"

namespace greta {

// A cell as kernels read it (ChainCell of kernels/abi/chain.h, with which a test compares it).
struct VulkanChainCell {
  static constexpr uint32_t kStride = 64;         // bytes from one cell to the next
  static constexpr uint32_t kMaxGroups = 65535;   // of a stage
  static constexpr uint32_t kMaxReplays = 65536;  // `ended` fits in 32 bits until then
  uint64_t stuck;   // the address of a word that becomes 1 when a group has waited in vain
  uint32_t groups;  // of the stage; nothing waits for a cell of 0 groups
  uint32_t ended;   // groups that have ended, of all replays
};

// The block of the kernel chain_check (ChainCheckBlock of kernels/abi/chain.h).
struct VulkanChainCheck {
  uint64_t values;  // the address of uint32_t[2][groups]; stages write to the halves in turn
  uint64_t wrong;   // the address of the count of values that were not there in time
  uint64_t chain;   // the address of the launch's cell
  uint32_t stage, groups;
};

class VulkanChain {
 public:
  static constexpr uint32_t kCells = 1024;
  static constexpr uint16_t kBehind = 120;      // as kChainBehind of kernels/abi/chain.h
  static constexpr uint64_t kManyGroups = 512;  // with so many, kernels with the cell there take no part
  static constexpr uint64_t kBytes = kCells * VulkanChainCell::kStride;  // vkCmdUpdateBuffer takes no more

  // Begins a stage with a launch of `groups` groups; `counts` says that they can count themselves. Returns
  // true if the stage waits for the one before it by counters. If not, or if `ordered` says that a barrier is
  // needed anyhow, the caller records a barrier.
  bool next_stage(bool counts, uint64_t groups, bool ordered);
  // The address of the stage's cell for its next launch. 0: the launch has none and waits for nothing.
  uint64_t link(bool counts, uint64_t groups);
  std::vector<uint8_t> cells(uint64_t stuck) const;  // the bytes of all cells before the first replay

  Buffer memory;          // holds the cells
  uint32_t replays = 0;   // since the cells were filled
  uint64_t abandons = 0;  // how often the stream had been abandoned when they were filled

 private:
  uint32_t last_ = 0;   // the last cell in use
  uint32_t stage_ = 0;  // the cell of the stage that is being recorded; 0: none
  bool whole_ = false;  // all launches of that stage count themselves
  uint32_t groups_[kCells] = {};
};

}  // namespace greta
