// A driver's library, opened at run time, so that no GPU driver is needed to link or start.
#pragma once
#include "platform/status.h"

namespace greta {

class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  Status open(const char* name);         // Unsupported, with the loader's reason
  void* find(const char* symbol) const;  // null if absent

 private:
  void* handle_ = nullptr;
};

}  // namespace greta
