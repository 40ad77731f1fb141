// What is known of the machine, and files whose names say what is in them.
#include "bench/save.h"

#include <sys/utsname.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "bench/build_commit.h"
#include "console.h"
#include "output_file.h"

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

void write_whole(const std::string& path, const std::string& text) {
  OutputFile file(path + ".part");
  file.write(text.data(), text.size());
  file.finish_as(path);
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

Json machine_now() {
  utsname system{};
  double load = 0;
  const Json clock = line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
  const bool known = uname(&system) == 0, busy = getloadavg(&load, 1) == 1;
  return {{"os", known ? Json(std::string(system.sysname) + " " + system.release) : Json(nullptr)},
          {"cpu", processor()},
          {"cpu_governor", line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")},
          {"cpu_mhz", clock.is_null() ? clock : Json(std::atof(clock.get<std::string>().c_str()) / 1000)},
          {"on_battery", on_battery()},
          {"load_average", busy ? Json(load) : Json(nullptr)},
          {"compiler", std::string(kBuildCompiler)}};
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
