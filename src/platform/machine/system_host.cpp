#include "platform/machine/system_host.h"

#include <algorithm>

#include "platform/machine/cgroup.h"
#include "platform/machine/system_text.h"
#include "platform/text/size_text.h"

namespace greta {

constexpr const char* kInstructionSets[] = {"avx2",        "fma",         "f16c",     "avx512f",  "avx512bw",
                                            "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_bf16"};

// The words of the line of flags that are instruction sets, in the order of the table.
static std::string known_flags(const std::string& line) {
  const std::string words = " " + line + " ";
  std::string known;
  for (const char* name : kInstructionSets)
    if (words.find(" " + std::string(name) + " ") != words.npos)
      known += (known.empty() ? "" : " ") + std::string(name);
  return known;
}

SystemHost read_system_host(const char* root) {
  SystemHost host;
  SystemText text;
  const auto read = [&](const char* path) { return text.read((root + std::string(path)).c_str()); };
  if (read("/proc/cpuinfo")) {
    const std::string flags = text.line_after("flags");
    host.flags = known_flags(flags.substr(std::min(flags.find(':') + 1, flags.size())));
  }
  if (read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")) host.governor = text.line_after("");
  if (read("/sys/kernel/mm/transparent_hugepage/enabled")) {  // "always [madvise] never"
    const std::string choices = text.line_after("");
    const size_t from = choices.find('[') + 1, end = choices.find(']');
    if (from > 0 && end != choices.npos && from < end) host.huge_pages = choices.substr(from, end - from);
  }
  const CgroupLimits limits = read_cgroup_limits(root);
  if (limits.memory_bytes != CgroupLimits{}.memory_bytes)
    host.memory_limit = SizeText(limits.memory_bytes).text;
  if (limits.cpu_count != CgroupLimits{}.cpu_count) host.processor_limit = std::to_string(limits.cpu_count);
  return host;
}

}  // namespace greta
