// Launches of one kernel, timed: how a device's bounds are measured.
#pragma once
#include "tune/tune.h"

namespace greta {

constexpr uint64_t kRoundNs =
    5'000'000;  // in the time of a shorter round its beginning and end would be seen

class Probe {
 public:
  Probe(Device& device, Stream& stream) : device_(device), stream_(stream) {}
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  Status open(const KernelRow& row,
              const Launch& launch);  // once; the launches that follow are specialised alike
  // From the beginning of the first to the end of the last; they may overlap.
  Status time(std::span<const Launch> launches, uint64_t* ns);
  // The best of a few rounds, on a GPU after its clocks have risen.
  Status best_time(std::span<const Launch> launches, uint64_t* ns);

 private:
  Device& device_;
  Stream& stream_;
  Kernel kernel_ = {};
  Event events_[2] = {};
};

}  // namespace greta
