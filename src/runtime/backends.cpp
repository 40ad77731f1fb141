#include "runtime/backends.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace greta {

#define BACKEND(name) extern const Backend backend_##name;
#include "runtime/backends.def"
#undef BACKEND

static constexpr const Backend* kBackends[] = {
#define BACKEND(name) &backend_##name,
#include "runtime/backends.def"
#undef BACKEND
};

std::span<const Backend* const> backends() { return kBackends; }

static Status unknown_device(const char* name) {
  char known[256] = "";
  for (const Backend* backend : kBackends) {
    const size_t used = strlen(known);
    format_text(known + used, sizeof known - used, ", %s", backend->name);
  }
  return fail(Code::Unsupported, "no device '%s': this build has auto%s (also numbered: cpu0)", name, known);
}

void write_id(const Backend& backend, uint32_t index, char (&out)[kDeviceIdBytes]) {
  if (backend.is_processor)
    format_text(out, sizeof out, "%s", backend.name);
  else
    format_text(out, sizeof out, "%.11s%u", backend.name, index % 10000);
}

namespace {

struct Found {
  uint32_t index;
  DeviceInfo info;
  Status status;       // of its description
  std::string reason;  // why it cannot be used; "" if it can
};

// The devices of a backend, best first: with memory of their own, with the host's, on the processor.
std::vector<Found> devices_of(const Backend& backend, const DeviceOptions& options) {
  std::vector<Found> found(backend.count(options));
  for (uint32_t i = 0; i < found.size(); ++i) {
    Found& device = found[i];
    device.index = i;
    device.status = backend.describe(i, options, &device.info);
    if (!device.status.ok()) device.reason = error_text();
  }
  const auto place = [](const Found& f) {
    return std::pair(f.info.cpu_type ? 2 : f.info.unified_memory ? 1 : 0, f.index);
  };
  std::ranges::sort(found, {}, place);
  return found;
}

// Makes "vulkan0, AMD Radeon: its driver lacks ..". The reason may begin with the device's name already.
std::string sentence(const Backend& backend, const Found& device) {
  const std::string id = backend.name + std::to_string(device.index) + ", ", name = device.info.name;
  return id + (device.reason.starts_with(name) ? "" : name + ": ") + device.reason;
}

// Opens the best device of a backend. A device that runs on the processor is taken only if `processors` says
// so and there is no other. `passed` gets the reasons why better ones were not taken; on failure the status
// is that of the first of them.
Status open_best(const Backend& backend, bool processors, const DeviceOptions& options, NamedDevice* out,
                 std::vector<std::string>* passed) {
  std::vector<Found> found = devices_of(backend, options);
  if (found.empty()) {  // `describe` knows the reason, such as no driver or no permission
    DeviceInfo none;
    const Status status = backend.describe(0, options, &none);
    passed->push_back(error_text());
    return status.ok() ? fail(Code::Unsupported, "%s has no device", backend.name) : status;
  }
  processors = processors && found[0].info.cpu_type;
  Status first;
  for (Found& device : found) {
    if (device.info.cpu_type && !processors) {
      if (passed->empty())
        device.reason = "it runs on the processor";
      else
        continue;
    }
    if (device.reason.empty()) {
      device.status = backend.open(device.index, options, &out->device);
      if (device.status.ok()) return write_id(backend, device.index, out->id), Status{};
      device.reason = error_text();
    }
    if (first.ok()) first = device.status.ok() ? Status{Code::Unsupported} : device.status;
    passed->push_back(sentence(backend, device));
  }
  return first;
}

std::string joined(const std::vector<std::string>& reasons) {
  std::string text;
  for (const std::string& reason : reasons) text += (text.empty() ? "" : "; ") + reason;
  return text;
}

// The log says why a GPU was passed over, since the processor is much slower.
Status open_first(const DeviceOptions& options, NamedDevice* out) {
  std::vector<std::string> passed;
  for (const Backend* backend : kBackends) {
    if (!open_best(*backend, backend->is_processor, options, out, &passed).ok()) continue;
    if (passed.empty()) return {};
    if (backend->is_processor)
      options.log(LogLevel::Warning, "no GPU to use, running on the CPU: %s", joined(passed).c_str());
    else
      options.log(LogLevel::Warning, "%.900s; %s is taken", joined(passed).c_str(), out->id);
    return {};
  }
  return fail(Code::Unsupported, "no usable device: %s", joined(passed).c_str());
}

// Opens the best device of the backend that was named without a number.
Status open_any(const Backend& backend, const DeviceOptions& options, NamedDevice* out) {
  std::vector<std::string> passed;
  const Status status = open_best(backend, true, options, out, &passed);
  if (!status.ok()) return fail(status.code, "device %s: %s", backend.name, joined(passed).c_str());
  if (!passed.empty()) options.log(LogLevel::Warning, "%.900s; %s is taken", joined(passed).c_str(), out->id);
  return {};
}

}  // namespace

Status open_device(const char* name, const DeviceOptions& options, NamedDevice* out) {
  if (!name || !*name || !strcmp(name, "auto")) return open_first(options, out);
  for (const Backend* backend : kBackends) {
    const size_t length = strlen(backend->name);
    if (strncmp(name, backend->name, length)) continue;
    const char* digits = name + length;
    const size_t digit_count = strspn(digits, "0123456789");
    if (digits[digit_count] || digit_count > 4) continue;
    if (!digit_count) return open_any(*backend, options, out);
    const uint32_t index = uint32_t(strtoul(digits, nullptr, 10));
    // `open` knows why a device is not there: no driver, no permission, or no such number.
    GRETA_TRY(within(backend->open(index, options, &out->device), "device %s", name));
    return write_id(*backend, index, out->id), Status{};
  }
  return unknown_device(name);
}

Status open_device(const char* name, const DeviceOptions& options, Device** out) {
  NamedDevice opened;
  GRETA_TRY(open_device(name, options, &opened));
  *out = opened.device;
  return {};
}

}  // namespace greta
