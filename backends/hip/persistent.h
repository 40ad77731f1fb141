// One launch for a captured plan: the kernel decode_stages runs the plan's own launches, one after the other,
// from a list in device memory. Its groups all stay on the device and wait for each other where the plan has
// a barrier.
#pragma once
#include <string>
#include <vector>

#include "runtime/device.h"

namespace greta {

class HipDevice;
struct HipCommand;

// A launch as the kernel reads it (PersistentLaunch of kernels/abi/persistent.h, with which a test compares
// it).
struct HipListedLaunch {
  static constexpr uint32_t kThreads = 512, kBlockBytes = 256;
  uint32_t body, threads;
  uint32_t groups_x, groups_y, groups;
  uint32_t first;  // the group of decode_stages that takes group 0
  uint32_t meets;  // 1: all groups meet before it
  uint32_t unused;
  uint8_t block[kBlockBytes];
};

// The argument block of decode_stages (PersistentBlock).
struct HipPersistentBlock {
  uint64_t list;
  uint64_t state;   // counters of the groups' meetings, all 0
  uint64_t report;  // memory of the host: kHipGridRuns before, 0 behind the end of all groups, or 1 + the
                    // launch before which groups did not meet
  uint32_t launches;
  uint32_t polls;
};
constexpr uint32_t kHipGridBytes = (3 * 16 + 4) * 32 * 4;  // of `state`
constexpr uint32_t kHipGridRuns = ~0u;

// What a capture keeps for it.
struct HipPersistent {
  explicit HipPersistent(HipDevice& owner);
  ~HipPersistent();
  HipPersistent(const HipPersistent&) = delete;
  HipPersistent& operator=(const HipPersistent&) = delete;

  // Lists the launches of a capture. Fails with Unsupported, and the reason, if one of them cannot be listed.
  Status make(const std::vector<HipCommand>& commands, uint32_t groups);
  // Of the last run. kHipGridRuns: not all groups have ended. 0: they have. Else 1 + the launch before which
  // groups did not meet; more than `launches` where all launches were done by then.
  uint32_t report() const { return *static_cast<const volatile uint32_t*>(report_.mapped); }
  void expect_report() { *static_cast<volatile uint32_t*>(report_.mapped) = kHipGridRuns; }
  HipPersistentBlock block() const;
  const char* name_of(uint32_t launch) const { return launch < names_.size() ? names_[launch] : "the end"; }

  HipDevice& device;
  std::vector<HipCommand> copies;  // that the plan makes after its launches
  uint32_t launches = 0, meetings = 0;
  bool filled = false;  // the list and the counters are on the device
  Buffer list, staged, state;

 private:
  Buffer report_;
  std::vector<const char*> names_;
};

}  // namespace greta
