// A driver's library. It is opened at run time, so that no GPU driver is needed to link or start.
#pragma once
#include <cstddef>
#include <string>

#include "platform/failure/status.h"

namespace greta {

class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  // Fails with Unsupported and the dynamic loader's reason. `is_there`, if given, gets whether there is a
  // file, which may lack a library that it needs.
  Status open(const char* name, bool* is_there = nullptr);
  void* find(const char* symbol) const;  // null if the library has no such symbol
  // Writes the path of the file that has the symbol; "" if it is not known.
  void path_of(const char* symbol, char* out, size_t bytes) const;

 private:
  void* handle_ = nullptr;
};

// The path of a library that this process has loaded and whose file name begins with `start`; "" if none has.
std::string loaded_library(const char* start);

// Keeps a library that this process has loaded until the process ends, also when all others close it.
void keep_loaded(const std::string& path);

}  // namespace greta
