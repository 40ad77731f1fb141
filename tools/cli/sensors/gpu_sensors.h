// What a GPU tells of itself while it works: clocks, power, temperature and memory, from the kernel's files
// or from NVIDIA's management library, which is opened if it is there.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace greta::cli {

struct SensorReading {
  std::string name;  // with its unit: "clock, MHz"
  double value;
};

// The highest clocks, and the bandwidth of the memory as its maker gives it; 0: not known.
struct GpuLimits {
  double clock_mhz = 0, memory_clock_mhz = 0, bandwidth_gb_s = 0;
};

inline constexpr char kGpuClock[] = "clock, MHz";

class GpuSensors {
 public:
  virtual ~GpuSensors() = default;
  virtual std::vector<SensorReading> read() = 0;  // what is there now
  virtual GpuLimits limits() = 0;
};

// Those of the GPU at this address ("0000:03:00.0"); null, and *why, where nothing tells of it. `root` is put
// in front of /sys, and `library` is NVIDIA's; tests give their own.
std::unique_ptr<GpuSensors> find_sensors(const std::string& pci, std::string* why,
                                         const std::string& root = "",
                                         const char* library = "libnvidia-ml.so.1");

// The bandwidth that makers give for the memory of known GPUs, by the driver's name of the device; 0: not
// known.
double nominal_bandwidth_gb_s(const std::string& name);

}  // namespace greta::cli
