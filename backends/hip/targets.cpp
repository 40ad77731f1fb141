// Which code objects this build has, and whether one of them fits a device.
#include <algorithm>
#include <string>

#include "backends/hip/system.h"

namespace greta {

const char* const kHipTargets = GRETA_HIP_BUILT;  // set by CMake

constexpr int kKnowsFamilies = 60400000;  // HIP 6.4 knows code object 6, which code for a family has

Status hip_check_code(const char* arch, int version, std::string_view targets) {
  std::string family;
  for (size_t at = 0; at < targets.size();) {
    const size_t end = std::min(targets.find(' ', at), targets.size());
    const std::string_view target = targets.substr(at, end - at);
    at = end + 1;
    if (target == arch) return {};
    if (runs_on(target, arch)) family = target;
  }
  if (!family.empty() && (!version || version >= kKnowsFamilies)) return {};
  if (!family.empty())
    return fail(Code::Unsupported,
                "HIP %d.%d does not know code for a family of GPUs (%s): install ROCm 6.4 or newer, or build "
                "with -DGRETA_HIP_TARGETS=%s",
                version / 10000000, version / 100000 % 100, family.c_str(), arch);
  if (targets.empty())
    return fail(Code::Unsupported,
                "this build has no HIP kernels: install clang 19 or newer and build again");
  char build[64] = "";
  if (compiles_for(arch)) format_text(build, sizeof build, ", or build with -DGRETA_HIP_TARGETS=%s", arch);
  return fail(Code::Unsupported, "no code object of this build fits %s, there are %.*s: use Vulkan%s", arch,
              int(targets.size()), targets.data(), build);
}

}  // namespace greta
