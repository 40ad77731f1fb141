// Files that the library writes: one file replaced as a whole, and what a folder holds of a kind.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "platform/status.h"

namespace greta {

// Replaces the file by these bytes, one part after the other. A reader sees the old file or the new one,
// never a part of it. Makes its folder and those above. Only the owner may read the file.
Status replace_file(const std::string& path, std::initializer_list<std::span<const uint8_t>> parts);

struct FolderFile {
  std::string path;
  uint64_t bytes;
  int64_t written_ns;  // when it was written last
};

// The regular files of a folder whose names end with `ending`, those that were written first coming first.
// None if the folder cannot be read.
std::vector<FolderFile> list_files(const std::string& folder, const char* ending);

// Both do nothing where there is no such file.
void touch_file(const std::string& path);  // as if it had been written now
void remove_file(const std::string& path);

}  // namespace greta
