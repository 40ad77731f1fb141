#include "runtime/known_faults.h"

#include <algorithm>
#include <cstdlib>

namespace greta {

namespace {

struct KnownFirmware {
  std::string_view target;
  uint64_t version;
  const char* fault;
};
struct KnownDriver {
  std::string_view backend, first, end;
  const char* fault;
};

#define DRIVER(...)
#define FIRMWARE(...) {__VA_ARGS__},
constexpr KnownFirmware kFirmware[] = {
#include "runtime/known_faults.def"
};
#undef DRIVER
#undef FIRMWARE
#define DRIVER(...) {__VA_ARGS__},
#define FIRMWARE(...)
constexpr KnownDriver kDrivers[] = {
#include "runtime/known_faults.def"
};
#undef DRIVER
#undef FIRMWARE

std::string_view version_of(std::string_view driver) {
  const size_t at = std::min(driver.find_first_of("0123456789"), driver.size());
  return driver.substr(at, driver.find_first_not_of("0123456789.", at) - at);
}

// Compares part by part as numbers. Parts that are missing are 0.
bool is_older(std::string_view a, std::string_view b) {
  const auto next = [](std::string_view* rest) {
    const size_t point = std::min(rest->find('.'), rest->size());
    const unsigned long part = strtoul(std::string(rest->substr(0, point)).c_str(), nullptr, 10);
    rest->remove_prefix(std::min(point + 1, rest->size()));
    return part;
  };
  while (!a.empty() || !b.empty()) {
    const unsigned long mine = next(&a), theirs = next(&b);
    if (mine != theirs) return mine < theirs;
  }
  return false;
}

}  // namespace

const char* firmware_fault(std::string_view target, uint64_t mes) {
  for (const KnownFirmware& known : kFirmware)
    if (known.target == target && known.version == (mes & 0xfff)) return known.fault;
  return nullptr;
}

const char* driver_fault(std::string_view backend, std::string_view driver) {
  const std::string_view version = version_of(driver);
  for (const KnownDriver& known : kDrivers)
    if (known.backend == backend && !version.empty() && !is_older(version, known.first) &&
        is_older(version, known.end))
      return known.fault;
  return nullptr;
}

}  // namespace greta
