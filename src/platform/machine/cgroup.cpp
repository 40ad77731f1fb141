// The limits stand in small text files. Each level of the hierarchy may set one, so all levels from the
// process's own group to the root are read. A container sees its own group as the root, and skips others.
#include "platform/machine/cgroup.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "platform/machine/system_text.h"
#include "platform/text/format_text.h"

namespace greta {

constexpr uint64_t kNone = SystemText::kNone;

namespace {

struct GroupReader {
  const char* root;
  CgroupLimits limits;
  SystemText text;
  char path[4096];

  bool read(const char* folder, const char* group, const char* file) {
    const int length = format_text(path, sizeof path, "%s%s%s/%s", root, folder, group, file);
    return length > 0 && size_t(length) < sizeof path && text.read(path);
  }
  uint64_t number(const char* folder, const char* group, const char* file) {
    return read(folder, group, file) ? text.number_after("") : kNone;
  }

  void memory(const char* folder, const char* group, const char* limit_file, const char* used_file,
              const char* const (&cached)[2]) {
    const uint64_t limit = number(folder, group, limit_file);
    if (limit >= uint64_t(1) << 62) return;  // v1 writes "no limit" as a huge number
    limits.memory_bytes = std::min(limits.memory_bytes, limit);
    uint64_t used = number(folder, group, used_file);
    if (used == kNone) used = 0;
    if (read(folder, group, "memory.stat")) {
      for (const char* key : cached) {
        const uint64_t bytes = text.number_after(key);
        if (bytes != kNone) used -= std::min(used, bytes);
      }
    }
    limits.memory_available_bytes = std::min(limits.memory_available_bytes, limit - std::min(limit, used));
  }

  void quota(uint64_t quota_us, uint64_t period_us) {
    if (quota_us == kNone || period_us == kNone || !period_us) return;
    const uint64_t count = std::max<uint64_t>(1, (quota_us + period_us - 1) / period_us);
    limits.cpu_count = uint32_t(std::min<uint64_t>(limits.cpu_count, count));
  }

  void version2(const char* group) {
    const char* folder = "/sys/fs/cgroup";
    memory(folder, group, "memory.max", "memory.current", {"inactive_file ", "active_file "});
    if (!read(folder, group, "cpu.max")) return;
    const char* period = strchr(text.data, ' ');
    if (period) quota(text.number_after(""), strtoull(period, nullptr, 10));
  }
  void memory1(const char* group) {
    memory("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes",
           {"total_inactive_file ", "total_active_file "});
  }
  void cpu1(const char* group) {
    for (const char* folder : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"})
      quota(number(folder, group, "cpu.cfs_quota_us"), number(folder, group, "cpu.cfs_period_us"));
  }

  // Calls `level` for the group and each group above it, the root ("") last.
  void each_level(char* group, void (GroupReader::*level)(const char*)) {
    for (;;) {
      char* slash = strrchr(group, '/');
      if (slash && !slash[1]) {
        *slash = 0;
        continue;
      }
      (this->*level)(group);
      if (!slash) return;
      *slash = 0;
    }
  }
};

bool lists(const char* names, const char* name) {
  const size_t length = strlen(name);
  for (const char* at = names; (at = strstr(at, name)); at += length)
    if ((at == names || at[-1] == ',') && (!at[length] || at[length] == ',')) return true;
  return false;
}

}  // namespace

CgroupLimits read_cgroup_limits(const char* root) {
  GroupReader reader{root, {}, {}, {}};
  SystemText groups;
  char path[4096];
  format_text(path, sizeof path, "%s/proc/self/cgroup", root);
  if (!groups.read(path)) return reader.limits;
  // Each line is "id:controllers:/group"; v2 has no controllers.
  for (char *line = groups.data, *next; *line; line = next) {
    char* end = strchr(line, '\n');
    next = end ? end + 1 : line + strlen(line);
    if (end) *end = 0;
    char* names = strchr(line, ':');
    char* group = names ? strchr(names + 1, ':') : nullptr;
    if (!group) continue;
    *group++ = 0;
    ++names;
    char copy[4096];
    const auto walk = [&](void (GroupReader::*level)(const char*)) {
      format_text(copy, sizeof copy, "%s", group);
      reader.each_level(copy, level);
    };
    if (!*names) walk(&GroupReader::version2);
    if (lists(names, "memory")) walk(&GroupReader::memory1);
    if (lists(names, "cpu")) walk(&GroupReader::cpu1);
  }
  return reader.limits;
}

uint64_t read_meminfo(const char* root, const char* key) {
  SystemText text;
  char path[4096];
  format_text(path, sizeof path, "%s/proc/meminfo", root);
  if (!text.read(path)) return 0;
  const uint64_t kilobytes = text.number_after(key);
  return kilobytes == kNone ? 0 : kilobytes * 1024;
}

}  // namespace greta
