// What the container or service manager allows this process: cgroup v2 and v1.
#pragma once
#include <cstdint>

namespace greta {

struct CgroupLimits {
  uint64_t memory_bytes = ~uint64_t(0);            // the tightest limit, all ones: none
  uint64_t memory_available_bytes = ~uint64_t(0);  // what is left under it, with reclaimable file pages
  uint32_t cpu_count = ~0u;                        // the quota in whole processors, rounded up
};

// `root` stands in front of /proc and /sys ("" for the real ones; tests give a folder).
CgroupLimits read_cgroup_limits(const char* root);

// The number in kB behind `key` ("MemAvailable:") of ROOT/proc/meminfo, in bytes; 0 if absent.
uint64_t read_meminfo(const char* root, const char* key);

}  // namespace greta
