// What is known of the machine, and files whose names say what is in them.
#include "bench/save.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "bench/build_commit.h"
#include "console.h"
#include "model.h"
#include "output_file.h"
#include "sensors/gpu_sensors.h"

namespace greta::cli {
namespace {

// The first line of a file; null if there is none.
Json line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? Json(line) : Json(nullptr);
}

Json processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return nullptr;
}

// Letters, digits and _ alone, so that it is a part of a file's name everywhere.
std::string plain(const std::string& text) {
  constexpr size_t kLongest = 40;
  std::string out;
  for (const char c : text.substr(0, kLongest)) {
    const bool kept = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (kept || (!out.empty() && out.back() != '_')) out += kept ? c : '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out.empty() ? "unknown" : out;
}

}  // namespace

// Whether the machine runs on its battery; null where nothing tells.
static Json on_battery() {
  constexpr char kSupplies[] = "/sys/class/power_supply";
  std::error_code error;
  Json battery;
  for (const auto& supply : std::filesystem::directory_iterator(kSupplies, error)) {
    const std::string path = supply.path().string();
    const Json type = line_of((path + "/type").c_str()), online = line_of((path + "/online").c_str());
    if (type == "Mains" && online == "1") return false;
    if (type == "Mains" || type == "Battery") battery = true;
  }
  return battery;
}

// The load of the last minute is asked for before this program adds to it.
std::string disturbance() {
  constexpr double kBusy = 0.25;  // of the processors
  double load = 0;
  const double processors = std::max(1u, std::thread::hardware_concurrency());
  std::string text;
  if (getloadavg(&load, 1) == 1 && load > kBusy * processors)
    text = format("others kept %.1f of %.0f processors busy in the last minute", load, processors);
  if (on_battery() == true)
    text += std::string(text.empty() ? "" : ", and ") + "the machine ran on its battery";
  return text;
}

static Json gpu_now(const std::string& pci) {
  Json json = {{"gpu_clock_mhz", nullptr},
               {"gpu_memory_clock_mhz", nullptr},
               {"gpu_power_w", nullptr},
               {"gpu_temperature_c", nullptr}};
  std::string why;
  const std::unique_ptr<GpuSensors> sensors = find_sensors(pci, &why);
  constexpr std::pair<const char*, const char*> kNames[] = {{"clock, MHz", "gpu_clock_mhz"},
                                                            {"memory clock, MHz", "gpu_memory_clock_mhz"},
                                                            {"power, W", "gpu_power_w"},
                                                            {"temperature, C", "gpu_temperature_c"}};
  for (const SensorReading& reading : sensors ? sensors->read() : std::vector<SensorReading>{})
    for (const auto& [name, key] : kNames)
      if (reading.name == name) json[key] = reading.value;
  return json;
}

static Json tuning_now(const greta_runtime* runtime) {
  char path[4096];
  size_t bytes = 0;
  if (greta_runtime_tuning_path(runtime, path, sizeof path, &bytes) != GRETA_OK || bytes >= sizeof path ||
      access(path, R_OK) != 0)
    return nullptr;
  return std::filesystem::path(path).filename().string();
}

Json machine_now(const greta_runtime* runtime) {
  utsname system{};
  double load = 0;
  const Json clock = line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
  const bool known = uname(&system) == 0, busy = getloadavg(&load, 1) == 1;
  Json json = {
      {"os", known ? Json(std::string(system.sysname) + " " + system.release) : Json(nullptr)},
      {"cpu", processor()},
      {"cpu_governor", line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")},
      {"cpu_mhz", clock.is_null() ? clock : Json(std::atof(clock.get<std::string>().c_str()) / 1000)},
      {"on_battery", on_battery()},
      {"load_average", busy ? Json(load) : Json(nullptr)},
      {"compiler", std::string(kBuildCompiler)},
      {"tuning_table", tuning_now(runtime)}};
  json.update(gpu_now(describe(runtime).pci));
  return json;
}

BenchRow row_of(const greta_runtime* runtime, const greta_model* model, bool saved) {
  BenchRow row;
  row.model = describe(model);
  row.device = describe(runtime);
  if (saved) row.machine = machine_now(runtime);
  return row;
}

std::string save_benches(const std::string& folder, const std::string& device, const std::string& json,
                         const std::string& csv) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Failed(folder + ": " + error.message());
  const std::time_t now = std::time(nullptr);
  char time[32] = "";
  std::tm parts{};
  if (gmtime_r(&now, &parts)) std::strftime(time, sizeof time, "%Y%m%dT%H%M%SZ", &parts);
  const std::string name =
      folder + "/" + time + "-" + plain(device) + "-" + plain(*kBuildCommit ? kBuildCommit : "unknown");
  std::string path = name;
  for (int i = 2; std::filesystem::exists(path + ".json", error); ++i) path = name + "-" + std::to_string(i);
  write_whole(path + ".csv", csv);
  write_whole(path + ".json", json);
  return path + ".json";
}

}  // namespace greta::cli
