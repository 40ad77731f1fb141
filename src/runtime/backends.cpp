#include "runtime/backends.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
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
    snprintf(known + used, sizeof known - used, ", %s", backend->name);
  }
  return fail(Code::Unsupported, "no device '%s': this build has auto%s (also numbered: cpu0)", name, known);
}

// A processor that is driven as a GPU (lavapipe) serves tests: it is slower than the CPU backend.
static bool is_for_auto(const Backend& backend, const DeviceInfo& info) {
  return !info.cpu_type || !strcmp(backend.name, "cpu");
}

// The first backend with a device that opens, one with memory of its own before one without. Why those
// before it did not is worth a message.
static Status open_first(const DeviceOptions& options, Device** out) {
  for (const Backend* backend : kBackends) {
    std::vector<DeviceInfo> infos(backend->count());
    std::vector<std::string> reasons(infos.size());  // "" if usable
    for (uint32_t i = 0; i < infos.size(); ++i)
      if (!backend->describe(i, &infos[i]).ok()) reasons[i] = error_text();
    for (const bool unified : {false, true}) {
      for (uint32_t i = 0; i < infos.size(); ++i) {
        if (!is_for_auto(*backend, infos[i]) || infos[i].unified_memory != unified) continue;
        if (reasons[i].empty()) {
          if (backend->open(i, options, out).ok()) return {};
          reasons[i] = error_text();
        }
        options.log(LogLevel::Warning, "%s%u cannot be used: %s", backend->name, i, reasons[i].c_str());
      }
    }
  }
  return fail(Code::Unsupported, "no usable device: none of the %zu backends of this build has one",
              std::size(kBackends));
}

Status open_device(const char* name, const DeviceOptions& options, Device** out) {
  if (!name || !*name || !strcmp(name, "auto")) return open_first(options, out);
  for (const Backend* backend : kBackends) {
    const size_t length = strlen(backend->name);
    if (strncmp(name, backend->name, length)) continue;
    const char* digits = name + length;
    const size_t digit_count = strspn(digits, "0123456789");
    if (digits[digit_count] || digit_count > 4) continue;
    const uint32_t index = uint32_t(strtoul(digits, nullptr, 10));
    // `open` knows best why a device is not there: no driver, no permission, no such number.
    return within(backend->open(index, options, out), "device %s", name);
  }
  return unknown_device(name);
}

}  // namespace greta
