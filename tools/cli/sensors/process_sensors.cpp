#include "sensors/process_sensors.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace greta::cli {
namespace {

// Of this process and the threads that it starts from now on, without what the kernel does for them.
int count_event(uint64_t event) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = event;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

ProcessSensors::ProcessSensors()
    : counters_{
          {"processor, G cycles/s", 1}, {"processor, G instructions/s", 1}, {"cache misses, M/s", 1e-3}} {
  constexpr uint64_t kEvents[] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                  PERF_COUNT_HW_CACHE_MISSES};
  for (size_t i = 0; i < counters_.size(); ++i) {
    counters_[i].file = count_event(kEvents[i]);
    if (counters_[i].file < 0 && missing_.empty())
      missing_ = std::string("cycles and cache misses of the processor: ") + std::strerror(errno);
  }
}

ProcessSensors::~ProcessSensors() {
  for (const Counter& counter : counters_)
    if (counter.file >= 0) close(counter.file);
}

std::vector<SensorReading> ProcessSensors::read(uint64_t now_ns) {
  std::vector<SensorReading> readings;
  double pages[2] = {};  // in all, resident
  if (std::ifstream file("/proc/self/statm"); file >> pages[0] >> pages[1])
    readings.push_back(
        {"memory of the process, MiB", pages[1] * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20)});
  const double since = static_cast<double>(now_ns - last_ns_);
  for (Counter& counter : counters_) {
    uint64_t count = 0;
    if (counter.file < 0 || ::read(counter.file, &count, sizeof count) != sizeof count) continue;
    if (last_ns_ > 0 && since > 0)
      readings.push_back({counter.name, static_cast<double>(count - counter.last) / since / counter.unit});
    counter.last = count;
  }
  last_ns_ = now_ns;
  return readings;
}

}  // namespace greta::cli
