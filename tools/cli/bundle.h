// What `doctor --bundle` writes: an archive for a report, without what is private.
#pragma once
#include <string>
#include <vector>

#include "drivers.h"

namespace greta::cli {

// The findings without the environment, without names of users and groups but those of every system, and
// without folders but those of the system: "/home/ann/rocm/lib/a.so" becomes ".../a.so".
std::vector<MachineFinding> without_private(std::vector<MachineFinding> findings);
std::string without_private_paths(const std::string& text);

struct ArchiveFile {
  std::string name, text;
};
// The bytes of a tar archive (POSIX ustar). Owners and times are 0.
std::string tar_bytes(const std::vector<ArchiveFile>& files);

}  // namespace greta::cli
