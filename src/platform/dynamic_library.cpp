#include "platform/dynamic_library.h"

#include <dlfcn.h>

namespace greta {

DynamicLibrary::~DynamicLibrary() {
  if (handle_) dlclose(handle_);
}

Status DynamicLibrary::open(const char* name) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    return fail(Code::Unsupported, "cannot open the library %s: %s", name, reason ? reason : "no reason");
  }
  if (handle_) dlclose(handle_);
  handle_ = handle;
  return {};
}

void* DynamicLibrary::find(const char* symbol) const { return handle_ ? dlsym(handle_, symbol) : nullptr; }

}  // namespace greta
