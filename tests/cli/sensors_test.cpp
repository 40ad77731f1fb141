// What GPUs and processes tell of themselves: made-up files of the kernel, a made-up library of NVIDIA's, and
// this very process.
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <map>
#include <thread>

#include "../../tools/cli/sensors/findings.cpp"
#include "../../tools/cli/sensors/gpu_sensors.cpp"
#include "../../tools/cli/sensors/gpu_sensors.h"
#include "../../tools/cli/sensors/process_sensors.cpp"
#include "places.h"

using namespace greta::cli;

namespace {

constexpr char kPci[] = "0000:03:00.0";

struct MadeUpSystem {
  const fs::path root = fs::temp_directory_path() / ("greta-sensors-" + std::to_string(::getpid()));
  const fs::path device = root / "sys/bus/pci/devices" / kPci;
  MadeUpSystem() {
    fs::remove_all(root);
    fs::create_directories(device / "hwmon/hwmon3");
  }
  ~MadeUpSystem() { fs::remove_all(root); }
  void write(const char* file, const char* text) const { std::ofstream(device / file) << text; }
  std::unique_ptr<GpuSensors> find(std::string* why) const {
    return find_sensors(kPci, why, root.string(), "libno-such-library.so");
  }
};

std::map<std::string, double> read(GpuSensors& sensors) {
  std::map<std::string, double> values;
  for (const SensorReading& reading : sensors.read()) values[reading.name] = reading.value;
  return values;
}

}  // namespace

TEST_CASE("sensors: what the kernel tells of a GPU is read in the units of its names", "[cli]") {
  const MadeUpSystem system;
  system.write("hwmon/hwmon3/freq1_input", "2431000000\n");
  system.write("hwmon/hwmon3/freq2_input", "1249000000\n");
  system.write("hwmon/hwmon3/power1_average", "287000000\n");
  system.write("hwmon/hwmon3/temp1_input", "61000\n");
  system.write("mem_info_vram_used", "1073741824\n");
  system.write("gpu_busy_percent", "97\n");
  system.write("pp_dpm_sclk", "0: 500Mhz\n1: 2482Mhz *\n");
  std::string why;
  const auto sensors = system.find(&why);
  REQUIRE(sensors);
  const auto values = read(*sensors);
  CHECK(values.at("clock, MHz") == 2431);
  CHECK(values.at("memory clock, MHz") == 1249);
  CHECK(values.at("power, W") == 287);
  CHECK(values.at("temperature, C") == 61);
  CHECK(values.at("memory in use, MiB") == 1024);
  CHECK(values.at("busy, %") == 97);
  CHECK(sensors->limits().clock_mhz == 2482);
  CHECK(sensors->limits().memory_clock_mhz == 0);  // that file is not there
}

TEST_CASE("sensors: a card without some files tells the rest, and one without all is named", "[cli]") {
  const MadeUpSystem system;
  std::string why;
  CHECK_FALSE(system.find(&why));
  CHECK(why.find(kPci) != std::string::npos);
  system.write("hwmon/hwmon3/power1_input", "31000000\n");
  system.write("hwmon/hwmon3/freq1_input", "no number\n");
  const auto sensors = system.find(&why);
  REQUIRE(sensors);
  CHECK(read(*sensors) == std::map<std::string, double>{{"power, W", 31}});
  CHECK_FALSE(find_sensors("", &why));
  CHECK(why.find("no address") != std::string::npos);
}

TEST_CASE("sensors: NVIDIA's library is asked where it knows the GPU, and closed again", "[cli]") {
  std::string why;
  {
    const auto sensors = find_sensors("0000:07:00.0", &why, "/no-such-root", FAKE_NVML_LIBRARY);
    REQUIRE(sensors);
    const auto values = read(*sensors);
    CHECK(values.at("clock, MHz") == 1755);
    CHECK(values.at("memory clock, MHz") == 2619);
    CHECK(values.at("power, W") == 412.5);
    CHECK(values.at("temperature, C") == 51);
    CHECK(values.at("memory in use, MiB") == 10240);
    CHECK(sensors->limits().clock_mhz == 1980);
    CHECK(std::abs(sensors->limits().bandwidth_gb_s - 3352) < 1);  // of an H100
  }
  CHECK_FALSE(find_sensors("0000:08:00.0", &why, "/no-such-root", FAKE_NVML_LIBRARY));
  void* const library = dlopen(FAKE_NVML_LIBRARY, RTLD_NOW);
  REQUIRE(library);
  CHECK(reinterpret_cast<int (*)()>(dlsym(library, "fake_nvml_started"))() == 0);
  dlclose(library);
}

TEST_CASE("sensors: the process tells its memory, and cycles or why there are none", "[cli]") {
  ProcessSensors sensors;
  (void)sensors.read(1);
  std::thread([] {
    volatile uint64_t sum = 0;
    for (uint32_t i = 0; i < 20'000'000; ++i) sum = sum + i;
  }).join();
  std::map<std::string, double> values;
  for (const SensorReading& reading : sensors.read(1'000'000'001)) values[reading.name] = reading.value;
  CHECK(values.at("memory of the process, MiB") > 1);
  if (sensors.missing().empty())
    CHECK(values.at("processor, G instructions/s") > 0.02);  // those of the thread, too
  else
    CHECK(sensors.missing().find("cycles") != std::string::npos);
}

TEST_CASE("doctor: what was measured stands beside what the maker gives", "[cli]") {
  CHECK(nominal_bandwidth_gb_s("AMD Radeon RX 7900 XTX (RADV NAVI31)") == 960);
  CHECK(nominal_bandwidth_gb_s("AMD Radeon RX 7900 XT (RADV NAVI31)") == 800);
  CHECK(nominal_bandwidth_gb_s("a GPU of next year") == 0);
  const MachineFinding good = bandwidth_finding("vulkan0", 864, 960),
                       bad = bandwidth_finding("vulkan0", 480, 960);
  CHECK(good.value == "864.0 GB/s, 90 % of the maker's 960 GB/s");
  CHECK(good.advice.empty());
  CHECK(bad.advice.find("low memory clock") != std::string::npos);
  CHECK(bandwidth_finding("vulkan0", 480, 0).value == "480.0 GB/s");
  CHECK(bandwidth_finding("vulkan0", 480, 0).advice.empty());
  CHECK(clock_finding("vulkan0", 2400, {2482, 0, 0}).advice.empty());
  CHECK(clock_finding("vulkan0", 500, {2482, 0, 0}).value == "500 MHz of at most 2482");
  CHECK(clock_finding("vulkan0", 500, {2482, 0, 0}).advice.find("power limit") != std::string::npos);
  CHECK(clock_finding("vulkan0", 500, {}).advice.empty());
}
