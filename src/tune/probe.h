// Times launches of one kernel, which is how a device's bounds are measured.
#pragma once
#include "tune/tune.h"

namespace greta {

// The shortest round that is timed. The cost of its beginning and end is then negligible.
constexpr uint64_t kRoundNs = 5'000'000;

class Probe {
 public:
  Probe(Device& device, Stream& stream) : device_(device), stream_(stream) {}
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // Loads the kernel, once. All launches must have the specialization constants of this one.
  Status open(const KernelRow& row, const Launch& launch);
  // The time from the beginning of the first to the end of the last. They may overlap.
  Status time(std::span<const Launch> launches, uint64_t* ns);
  // The shortest time of a few rounds. On a GPU they begin after its clocks have risen.
  Status best_time(std::span<const Launch> launches, uint64_t* ns);

 private:
  Device& device_;
  Stream& stream_;
  Kernel kernel_ = {};
  Event events_[2] = {};
};

}  // namespace greta
