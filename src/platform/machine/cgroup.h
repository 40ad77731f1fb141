// The limits that a container or service manager sets for this process, by cgroup v2 or v1.
#pragma once
#include <cstdint>

namespace greta {

struct CgroupLimits {
  uint64_t memory_bytes = ~uint64_t(0);            // the tightest limit; all ones if there is none
  uint64_t memory_available_bytes = ~uint64_t(0);  // what is left below it; file pages count as free
  uint32_t cpu_count = ~0u;                        // the quota in whole processors, rounded up
};

// `root` is put in front of /proc and /sys. It is "" for the real ones; tests give a folder.
CgroupLimits read_cgroup_limits(const char* root);

// Reads the value of `key` ("MemAvailable:") from ROOT/proc/meminfo, in bytes; 0 if it is absent.
uint64_t read_meminfo(const char* root, const char* key);

}  // namespace greta
