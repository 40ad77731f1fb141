// What bounds work on a device: reading memory, or multiplying and adding.
#pragma once
#include <algorithm>
#include <cstdint>

namespace greta::cli {

struct Roofs {
  uint64_t bandwidth = 0, arithmetic = 0;  // bytes and operations per second, as measured; 0: not measured
};

struct Bound {
  bool arithmetic;  // false: bandwidth
  double percent;   // of the work that the roof allows in this time
};

inline Bound bound_of(const Roofs& roofs, uint64_t bytes, uint64_t flops, uint64_t ns) {
  const auto seconds = [](uint64_t work, uint64_t roof) {
    return roof > 0 ? static_cast<double>(work) / static_cast<double>(roof) : 0;
  };
  const double reading = seconds(bytes, roofs.bandwidth), multiplying = seconds(flops, roofs.arithmetic);
  const double taken = 1e-9 * static_cast<double>(std::max<uint64_t>(ns, 1));
  return {multiplying > reading, 100 * std::max(reading, multiplying) / taken};
}

}  // namespace greta::cli
