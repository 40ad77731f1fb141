// Files that the library writes: one file replaced as a whole, and what a folder holds of a kind.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "platform/failure/status.h"

namespace greta {

// Replaces the file by these bytes, one part after the other. A reader sees the old file or the new one,
// never a part of it. Makes its folder and those above. Only the owner may read the file.
// The bytes go to a file beside it first, named by the process ("NAME.4711") and locked while it is written.
Status replace_file(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts);

struct FolderFile {
  std::string path;
  uint64_t bytes;
  int64_t written_ns;  // when it was written last
};

// Removes what programs that were killed left of replace_file(): files beside those whose names end with
// `ending`, which nobody writes any more.
void remove_leftovers(const std::string& folder, const char* ending);

// The regular files of a folder whose names end with `ending`, and those that are being written beside them.
// Those that were written first come first. None if the folder cannot be read.
std::vector<FolderFile> list_files(const std::string& folder, const char* ending);

// Both do nothing where there is no such file.
void touch_file(const std::string& path);  // as if it had been written now
void remove_file(const std::string& path);

}  // namespace greta
