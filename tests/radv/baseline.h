// What RADV made of each pipeline when it was last looked at: a file for each version of Mesa and family of
// GPUs, baseline/<version>/<family>.tsv.
#pragma once
#include <map>
#include <string>

#include "radv/radv_device.h"

namespace greta::test {

struct BaselineLine {
  uint32_t needs = 0;  // of the kernel's row: feature bits
  Compiled compiled;   // without what must be 0 anyway
};
using Baseline = std::map<std::string, BaselineLine>;  // by Pipeline::name()

// False: there is none.
bool read_baseline(const std::string& path, Baseline* out);
Status write_baseline(const std::string& path, const Baseline& baseline);

}  // namespace greta::test
