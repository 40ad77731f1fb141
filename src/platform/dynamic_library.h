// A driver's library. It is opened at run time, so that no GPU driver is needed to link or start.
#pragma once
#include <cstddef>

#include "platform/status.h"

namespace greta {

class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  Status open(const char* name);         // fails with Unsupported and the loader's reason
  void* find(const char* symbol) const;  // null if the library has no such symbol
  // Writes the path of the file that has the symbol; "" if it is not known.
  void path_of(const char* symbol, char* out, size_t bytes) const;

 private:
  void* handle_ = nullptr;
};

}  // namespace greta
