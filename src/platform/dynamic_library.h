// A driver's library. It is opened at run time, so that no GPU driver is needed to link or start.
#pragma once
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

 private:
  void* handle_ = nullptr;
};

}  // namespace greta
