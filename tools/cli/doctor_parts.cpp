#include "doctor_parts.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "console.h"
#include "model.h"
#include "sensors/findings.h"

namespace greta::cli {

namespace fs = std::filesystem;

std::vector<MachineFinding> find_caches(const std::string& folder) {
  if (folder.empty())
    return {{"cache", "folder", "none: there is no home, so kernels are compiled at each start",
             "set XDG_CACHE_HOME to a folder that this user may write to"}};
  uint64_t kernels = 0, kernel_bytes = 0, tables = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const uint64_t bytes = entry.is_regular_file(error) ? entry.file_size(error) : 0;
    if (error || bytes == 0) continue;
    if (name.starts_with("tuning-") && name.ends_with(".jsonl")) ++tables;
    if (name.starts_with("greta-vulkan-") && name.ends_with(".cache")) ++kernels, kernel_bytes += bytes;
  }
  std::vector<MachineFinding> findings = {{"cache", "folder", folder, ""}};
  const bool there = access(folder.c_str(), F_OK) == 0;
  if (there && access(folder.c_str(), R_OK | W_OK | X_OK) != 0)
    findings[0].advice = "let this user write to it, or kernels are compiled at each start";
  findings.push_back({"cache", "compiled kernels",
                      kernels > 0 ? format("%llu files, ", static_cast<unsigned long long>(kernels)) +
                                        size_text(kernel_bytes)
                                  : "none yet",
                      ""});
  findings.push_back(
      {"cache", "tuning tables", tables > 0 ? std::to_string(tables) : "none: greta-cli tune makes one", ""});
  return findings;
}

std::vector<MachineFinding> measure_reading(const std::string& path) {
  constexpr size_t kPiece = 4u << 20;
  constexpr uint64_t kMost = 1u << 30;
  const auto failed = [&]() -> std::vector<MachineFinding> {
    return {
        {"model", "reading", "failed: " + std::string(std::strerror(errno)), "look at the file: " + path}};
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return failed();
  (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  std::vector<char> piece(kPiece);
  uint64_t bytes = 0;
  ssize_t n = 1;
  const auto start = std::chrono::steady_clock::now();
  while (bytes < kMost && !interrupted() && (n = read(file, piece.data(), piece.size())) > 0)
    bytes += static_cast<uint64_t>(n);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (n < 0) {
    const std::vector<MachineFinding> why = failed();
    close(file);
    return why;
  }
  close(file);
  const double rate = static_cast<double>(bytes) / 1e9 / std::max(seconds.count(), 1e-9);
  return {
      {"model", "reading",
       format("%.2f GB/s over the first %s; pages that a program has mapped stay in memory and are faster",
              rate, size_text(bytes).c_str()),
       ""}};
}

namespace {

constexpr int kSelftestSeconds = 30;

// A self-test in one shape, which ends after some time.
struct QuickTest {
  std::chrono::steady_clock::time_point end;
  uint32_t ops = 0, kernels = 0;
  std::string failures = {}, stopped_in = {};
};

int note_tested(void* user, const greta_selftest_result* result) {
  QuickTest& test = *static_cast<QuickTest*>(user);
  test.kernels += result->kernels;
  ++test.ops;
  if (!result->passed)
    test.failures += format("%s%s: %s", test.failures.empty() ? "" : "; ", result->op, result->failure);
  return 0;
}

int watch_test(void* user, const greta_selftest_progress* now) {
  QuickTest& test = *static_cast<QuickTest*>(user);
  if (std::chrono::steady_clock::now() < test.end) return 0;
  test.stopped_in = now->op;
  return 1;
}

MachineFinding test_quickly(greta_runtime* runtime, const std::string& device) {
  QuickTest test{std::chrono::steady_clock::now() + std::chrono::seconds(kSelftestSeconds)};
  auto run = sized<greta_selftest_options>();
  run.quick = 1;
  run.on_result = note_tested;
  run.on_progress = watch_test;
  run.user = &test;
  uint32_t failed = 0;
  const greta_status status = greta_runtime_selftest(runtime, &run, &failed);
  if (status != GRETA_ERROR_CANCELLED) check(status);
  std::string value = test.failures.empty() ? format("%u kernels of %u ops right", test.kernels, test.ops)
                                            : "WRONG: " + test.failures;
  if (!test.stopped_in.empty())
    value +=
        format("; after %d s the rest was left out, from %s on", kSelftestSeconds, test.stopped_in.c_str());
  return {device, "quick self-test", value,
          test.failures.empty() ? "" : "use another driver, and report it with greta-cli selftest"};
}

// The highest clock of a GPU while it works.
class ClockWatch {
 public:
  explicit ClockWatch(const std::string& pci) {
    std::string why;
    sensors_ = find_sensors(pci, &why);
    if (sensors_) thread_ = std::thread([this] { run(); });
  }
  ~ClockWatch() { (void)highest(); }
  double highest() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return highest_;
  }
  GpuLimits limits() { return sensors_ ? sensors_->limits() : GpuLimits{}; }

 private:
  void run() {
    while (!stop_) {
      for (const SensorReading& reading : sensors_->read())
        if (reading.name == kGpuClock) highest_ = std::max(highest_, reading.value);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::unique_ptr<GpuSensors> sensors_;
  double highest_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

void measure_device(const std::string& device, const std::function<void(const MachineFinding&)>& found) {
  DeviceOptions options;
  options.device = device;
  const Runtime runtime = open_runtime(options);
  const greta_device_info info = describe(runtime.get());
  uint64_t bytes_per_second = 0, operations = 0;
  ClockWatch clock(info.pci);
  check(greta_runtime_measure_bandwidth(runtime.get(), &bytes_per_second));
  check(greta_runtime_measure_arithmetic(runtime.get(), &operations));
  const GpuLimits limits = clock.limits();
  const double nominal =
      limits.bandwidth_gb_s > 0 ? limits.bandwidth_gb_s : nominal_bandwidth_gb_s(info.name);
  found({device, "free memory", size_text(info.memory_free_bytes), ""});
  found(bandwidth_finding(device, static_cast<double>(bytes_per_second) / 1e9, nominal));
  found({device, "measured arithmetic", format("%.3f TFLOP/s", static_cast<double>(operations) / 1e12), ""});
  const double highest = clock.highest();
  if (highest > 0) found(clock_finding(device, highest, limits));
  found(test_quickly(runtime.get(), device));
}

}  // namespace greta::cli
