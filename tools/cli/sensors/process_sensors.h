// What this process costs the machine: memory, and cycles and cache misses of all its threads where the
// kernel lets them be counted.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sensors/gpu_sensors.h"

namespace greta::cli {

// Threads count that are started while it lives, and the one that made it.
class ProcessSensors {
 public:
  ProcessSensors();
  ~ProcessSensors();
  ProcessSensors(const ProcessSensors&) = delete;
  ProcessSensors& operator=(const ProcessSensors&) = delete;

  std::vector<SensorReading> read(uint64_t now_ns);        // rates are those since the last call
  const std::string& missing() const { return missing_; }  // why nothing is counted; "" if it is

 private:
  struct Counter {
    const char* name;
    double unit;
    int file = -1;
    uint64_t last = 0;
  };
  std::vector<Counter> counters_;
  uint64_t last_ns_ = 0;
  std::string missing_;
};

}  // namespace greta::cli
