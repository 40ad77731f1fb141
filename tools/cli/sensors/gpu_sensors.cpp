#include "sensors/gpu_sensors.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace greta::cli {
namespace {

namespace fs = std::filesystem;

// The number in a file of the kernel; false if there is none.
bool read_number(const std::string& path, double* out) {
  std::ifstream file(path);
  return static_cast<bool>(file >> *out);
}

// ---- the files of amdgpu, and of other drivers that have the same ones ----

class SystemSensors final : public GpuSensors {
 public:
  explicit SystemSensors(std::string folder) : folder_(std::move(folder)) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_ + "/hwmon", error))
      hwmon_ = entry.path().string();
  }

  std::vector<SensorReading> read() override {
    std::vector<SensorReading> readings;
    const auto add = [&](const char* name, const std::string& path, double unit) {
      double value = 0;
      if (read_number(path, &value)) readings.push_back({name, value / unit});
    };
    add(kGpuClock, hwmon_ + "/freq1_input", 1e6);
    add("memory clock, MHz", hwmon_ + "/freq2_input", 1e6);
    double watts = 0;  // a card has one of both files
    if (read_number(hwmon_ + "/power1_average", &watts) || read_number(hwmon_ + "/power1_input", &watts))
      readings.push_back({"power, W", watts / 1e6});
    add("temperature, C", hwmon_ + "/temp1_input", 1e3);
    add("memory in use, MiB", folder_ + "/mem_info_vram_used", 1 << 20);
    add("busy, %", folder_ + "/gpu_busy_percent", 1);
    return readings;
  }

  GpuLimits limits() override {
    return {highest(folder_ + "/pp_dpm_sclk"), highest(folder_ + "/pp_dpm_mclk"), 0};
  }

 private:
  // Lines are "1: 2100Mhz *".
  static double highest(const std::string& path) {
    std::ifstream file(path);
    double most = 0;
    for (std::string line; std::getline(file, line);)
      if (const size_t at = line.find(": "); at != line.npos)
        most = std::max(most, std::atof(line.c_str() + at + 2));
    return most;
  }

  std::string folder_, hwmon_;
};

// ---- NVIDIA's management library ----

class NvidiaSensors final : public GpuSensors {
 public:
  ~NvidiaSensors() override {
    if (opened_) shut_down_();
    if (library_) dlclose(library_);
  }

  // False if the library does not know the GPU, or lacks a function.
  bool open(const char* name, const std::string& pci) {
    library_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library_) return false;
    int (*start)() = nullptr;
    int (*handle)(const char*, void**) = nullptr;
    const bool whole =
        find("nvmlInit_v2", &start) && find("nvmlShutdown", &shut_down_) &&
        find("nvmlDeviceGetHandleByPciBusId_v2", &handle) && find("nvmlDeviceGetClockInfo", &clock_) &&
        find("nvmlDeviceGetMaxClockInfo", &most_) && find("nvmlDeviceGetPowerUsage", &power_) &&
        find("nvmlDeviceGetTemperature", &temperature_) && find("nvmlDeviceGetMemoryInfo", &memory_);
    find("nvmlDeviceGetMemoryBusWidth", &bus_width_);  // not in old libraries
    opened_ = whole && start() == 0;
    return opened_ && handle(pci.c_str(), &device_) == 0;
  }

  std::vector<SensorReading> read() override {
    std::vector<SensorReading> readings;
    unsigned value = 0;
    if (clock_(device_, kGraphics, &value) == 0) readings.push_back({kGpuClock, double(value)});
    if (clock_(device_, kMemory, &value) == 0) readings.push_back({"memory clock, MHz", double(value)});
    if (power_(device_, &value) == 0) readings.push_back({"power, W", value / 1e3});
    if (temperature_(device_, 0, &value) == 0) readings.push_back({"temperature, C", double(value)});
    unsigned long long bytes[3] = {};  // in all, free, used
    if (memory_(device_, bytes) == 0)
      readings.push_back({"memory in use, MiB", static_cast<double>(bytes[2]) / (1 << 20)});
    return readings;
  }

  GpuLimits limits() override {
    GpuLimits limits;
    unsigned value = 0;
    if (most_(device_, kGraphics, &value) == 0) limits.clock_mhz = value;
    if (most_(device_, kMemory, &value) == 0) limits.memory_clock_mhz = value;
    // Two words of the bus in each cycle of the clock that the library tells, also of HBM.
    if (bus_width_ && bus_width_(device_, &value) == 0)
      limits.bandwidth_gb_s = 2e-3 * limits.memory_clock_mhz * value / 8;
    return limits;
  }

 private:
  static constexpr int kGraphics = 0, kMemory = 2;  // nvmlClockType_t

  template <class Function>
  bool find(const char* name, Function* out) {
    *out = reinterpret_cast<Function>(dlsym(library_, name));
    return *out != nullptr;
  }

  void* library_ = nullptr;
  void* device_ = nullptr;
  bool opened_ = false;
  int (*shut_down_)() = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
  int (*most_)(void*, int, unsigned*) = nullptr;
  int (*power_)(void*, unsigned*) = nullptr;
  int (*temperature_)(void*, int, unsigned*) = nullptr;
  int (*memory_)(void*, unsigned long long*) = nullptr;
  int (*bus_width_)(void*, unsigned*) = nullptr;
};

}  // namespace

std::unique_ptr<GpuSensors> find_sensors(const std::string& pci, std::string* why, const std::string& root,
                                         const char* library) {
  if (pci.empty()) {
    *why = "the device has no address on the bus";
    return nullptr;
  }
  auto nvidia = std::make_unique<NvidiaSensors>();
  if (nvidia->open(library, pci)) return nvidia;
  auto system = std::make_unique<SystemSensors>(root + "/sys/bus/pci/devices/" + pci);
  if (!system->read().empty()) return system;
  *why = "neither the kernel nor " + std::string(library) + " tells anything of " + pci;
  return nullptr;
}

double nominal_bandwidth_gb_s(const std::string& name) {
#define NOMINAL(words, gb_s) \
  if (name.find(words) != name.npos) return gb_s;
#include "sensors/nominal_bandwidths.def"
  return 0;
}

}  // namespace greta::cli
