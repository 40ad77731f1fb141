#include "tune/probe.h"

#include <algorithm>

namespace greta {

constexpr uint32_t kRounds = 4;
constexpr uint64_t kWarmingNs = 300'000'000;  // an idle GPU has slow clocks at first

Probe::~Probe() {
  for (Event& event : events_) device_.destroy(event);
  device_.unload(kernel_);
}

Status Probe::open(const KernelRow& row, const Launch& launch) {
  for (Event& event : events_) GRETA_TRY(device_.create_event(&event));
  KernelCode code = row.code;
  uint32_t constants[kMaxConstants + 1];
  code.constants = {constants, kernel_constants(row, launch.fields(), constants)};
  return device_.load(code, &kernel_);
}

Status Probe::time(std::span<const Launch> launches, uint64_t* ns) {
  GRETA_TRY(stream_.signal(events_[0]));
  for (const Launch& launch : launches)
    GRETA_TRY(
        stream_.dispatch(kernel_, launch.groups, launch.arguments(), {launch.accesses, launch.access_count}));
  GRETA_TRY(stream_.barrier());
  GRETA_TRY(stream_.signal(events_[1]));
  GRETA_TRY(stream_.wait());
  GRETA_TRY(device_.elapsed_ns(events_[0], events_[1], ns));
  *ns = std::max<uint64_t>(*ns, 1);
  return {};
}

Status Probe::best_time(std::span<const Launch> launches, uint64_t* ns) {
  const uint64_t warming = device_.info().host_functions ? 0 : kWarmingNs, start = now_ns();
  uint64_t best = ~uint64_t(0);
  for (uint32_t i = 0; i < kRounds || now_ns() - start < warming; ++i) {
    uint64_t round = 0;
    GRETA_TRY(time(launches, &round));
    best = std::min(best, round);
  }
  *ns = best;
  return {};
}

}  // namespace greta
