#include "backends/hip/loader.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/hip/runtimes.h"
#include "backends/hip/system.h"

namespace greta {

Status HipLibrary::get(const DeviceOptions& options, const HipLibrary** out) {
  static std::mutex mutex;
  static auto& opened = *new std::map<std::string, std::unique_ptr<HipLibrary>>;
  const std::string key = options.driver_library ? options.driver_library : "";
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<HipLibrary>& library = opened[key];
  if (!library) {
    auto made = std::make_unique<HipLibrary>();
    GRETA_TRY(made->open(options));
    library = std::move(made);
  }
  GRETA_TRY(library->check_process());
  *out = library.get();
  return {};
}

// A second runtime in a process may crash in it, so one that is loaded already is the only one.
Status HipLibrary::open(const DeviceOptions& options) {
  std::string chosen = options.driver_library ? options.driver_library : loaded_library("libamdhip64.so");
  if (!chosen.empty()) {
    GRETA_TRY(library_.open(chosen.c_str()));
    return load(chosen.c_str());
  }
  std::string reasons;  // why runtimes that are there cannot be used
  for (const std::string& candidate : hip_runtimes(options)) {
    options.log(LogLevel::Debug, "opening %s", candidate.c_str());
    bool is_there;
    Status status = library_.open(candidate.c_str(), &is_there);
    if (status.ok()) status = load(candidate.c_str());
    if (status.ok()) return {};
    const std::string reason = error_text();
    if (is_there && reasons.find(reason) == reasons.npos) reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  if (!reasons.empty()) return fail(Code::Unsupported, "%s", reasons.c_str());
  if (!hip_may_be_there(options)) return explain_no_hip_gpu(options.system);
  return fail(Code::Unsupported,
              "no HIP runtime (libamdhip64.so.7, or another from .6 on): install ROCm 6.4 or newer");
}

Status HipLibrary::load(const char* name) {
  hipRuntimeGetVersion = reinterpret_cast<int (*)(int*)>(library_.find("hipRuntimeGetVersion"));
  library_.path_of("hipRuntimeGetVersion", path_, sizeof path_);
  if (hipRuntimeGetVersion) GRETA_TRY(check_version());
#define NEED(result, symbol, ...)                                             \
  symbol = reinterpret_cast<result (*)(__VA_ARGS__)>(library_.find(#symbol)); \
  if (!symbol) return fail(Code::Unsupported, "%s has no %s", name, #symbol);
#define WANT(result, symbol, ...) symbol = reinterpret_cast<result (*)(__VA_ARGS__)>(library_.find(#symbol));
#include "backends/hip/symbols.def"
  return {};
}

// A runtime that tells no version, as some do where there is no device, is judged by its functions.
Status HipLibrary::check_version() const {
  const int known = version();
  if (!known || known / 10000000 >= kOldestHip) return {};
  char text[64];
  text_of_version(text);
  return fail(Code::Unsupported, "%s is %s, which is too old: %d.0 is needed, and 6.4 for the usual kernels",
              path_, text, kOldestHip);
}

int HipLibrary::version() const {
  int version = 0;
  return hipRuntimeGetVersion(&version) == kHipSuccess ? version : 0;
}

void HipLibrary::text_of_version(char (&out)[64]) const {
  const int known = version();
  format_text(out, sizeof out, "HIP %d.%d.%d", known / 10000000, known / 100000 % 100, known % 100000);
}

Status HipLibrary::result(int error, const char* what) const {
  if (error == kHipSuccess) return {};
  (void)hipGetLastError();  // it would otherwise be found by the program that GRETA is built into
  const Code code = error == kHipOutOfMemory ? Code::Memory : Code::Device;
  return fail(code, "%s: %s (%s)", what, hipGetErrorName(error), hipGetErrorString(error));
}

uint32_t HipLibrary::device_count() const {
  int count = 0;
  const bool ok = hipGetDeviceCount(&count) == kHipSuccess;
  if (!ok) (void)hipGetLastError();
  return ok && count > 0 ? uint32_t(count) : 0;
}

Status HipLibrary::check_index(uint32_t index, const SystemView& system) const {
  const uint32_t count = device_count();
  if (!count) return within(explain_no_hip_gpu(system), "the HIP runtime finds no device");
  if (index < count) return {};
  return fail(Code::Unsupported, "there %s %u HIP device%s, numbered from 0", count == 1 ? "is" : "are",
              count, count == 1 ? "" : "s");
}

HipCurrent::HipCurrent(const HipLibrary& hip, int device) : hip_(hip) {
  relaxed_ = hip_.hipThreadExchangeStreamCaptureMode &&
             hip_.hipThreadExchangeStreamCaptureMode(&mode_before_) == kHipSuccess;
  if (hip_.hipGetDevice(&before_) == kHipSuccess && before_ == device) return;
  error_ = hip_.hipSetDevice(device);
  changed_ = error_ == kHipSuccess;
}

HipCurrent::~HipCurrent() {
  if (changed_) (void)hip_.hipSetDevice(before_);
  if (relaxed_) (void)hip_.hipThreadExchangeStreamCaptureMode(&mode_before_);
}

}  // namespace greta
