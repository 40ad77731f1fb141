// What a machine has of GPUs, drivers and permissions, as findings for a person.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/backends.h"

namespace greta {

struct Finding {
  std::string subject;  // "system", "/dev/kfd", "gpu 0000:03:00.0", "hip0"
  std::string key, value;
  std::string advice;  // what to do, where something keeps a GPU from being used; else ""
};

// `targets` are those of the code objects in this build: "gfx942", "gfx11-generic".
struct MachineParts {
  std::span<const Backend* const> backends;
  std::span<const std::string> targets;
  DeviceOptions options;
};
std::vector<Finding> examine_machine(const MachineParts& parts);

}  // namespace greta
