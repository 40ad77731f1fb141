#include "tests/mock_hip/orders.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>

namespace mock_hip {

static std::string variable(const char* name, const char* otherwise = "") {
  const char* text = std::getenv(name);
  return text ? text : otherwise;
}

static std::vector<std::string> parts(const std::string& text) {
  std::vector<std::string> result;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) result.push_back(part);
  return result;
}

std::vector<std::string> archs() {
  const std::string names = variable("MOCK_HIP_ARCH", "gfx942:sramecc+:xnack-");
  if (names == "none" || variable("HIP_VISIBLE_DEVICES", "0").empty()) return {};
  return parts(names);
}

uint64_t number(const char* name, uint64_t otherwise) {
  const std::string text = variable(name);
  return text.empty() ? otherwise : std::strtoull(text.c_str(), nullptr, 10);
}

static std::mutex counter_mutex;

// Counts calls since the variable was given its present value.
struct Counter {
  std::string value;
  std::map<std::string, uint64_t> calls;
  uint64_t next(const std::string& now, const std::string& what) {
    if (now != value) value = now, calls.clear();
    return ++calls[what];
  }
};

int ordered_failure(const char* function) {
  static Counter counter;
  const std::string orders = variable("MOCK_HIP_FAIL");
  const std::lock_guard<std::mutex> lock(counter_mutex);
  const uint64_t call = counter.next(orders, function);
  for (const std::string& order : parts(orders)) {
    std::stringstream words(order);
    std::string name;
    uint64_t passing = 0, times = 0;
    int error = 0;
    if (!(words >> name >> passing >> error) || name != function || call <= passing) continue;
    if (!(words >> times) || call <= passing + times) return error;
  }
  return 0;
}

Launch next_launch() {
  static Counter hangs, faults;
  const std::string hang = variable("MOCK_HIP_HANG"), fault = variable("MOCK_HIP_FAULT");
  const std::lock_guard<std::mutex> lock(counter_mutex);
  const uint64_t to_hang = hangs.next(hang, ""), to_fault = faults.next(fault, "");
  if (!hang.empty() && to_hang == std::strtoull(hang.c_str(), nullptr, 10)) return Launch::Hangs;
  if (!fault.empty() && to_fault == std::strtoull(fault.c_str(), nullptr, 10)) return Launch::Faults;
  return Launch::Runs;
}

}  // namespace mock_hip
