// What the system says of its processors and memory, for a person who asks why it is slow.
#pragma once
#include <string>
#include <vector>

namespace greta {

struct SystemHost {
  std::string flags;       // instruction sets of /proc/cpuinfo that kernels may use: "avx2 fma avx512f"
  std::string governor;    // of the first processor's clock: "powersave"; "" if it has none
  std::string huge_pages;  // "always", "madvise", "never"; "" if it is not known
  // Limits of the container or service; "" if there is none.
  std::string memory_limit, processor_limit;
};

// `root` is put in front of /proc and /sys.
SystemHost read_system_host(const char* root);

}  // namespace greta
