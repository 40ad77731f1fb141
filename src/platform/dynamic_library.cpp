#include "platform/dynamic_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "platform/format_text.h"

namespace greta {

DynamicLibrary::~DynamicLibrary() {
  if (handle_) dlclose(handle_);
}

Status DynamicLibrary::open(const char* name) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* reason = dlerror();
    if (!reason) reason = "no reason";
    const size_t length = std::strlen(name);  // the loader's text begins with the name, too
    if (std::strncmp(reason, name, length) == 0 && std::strncmp(reason + length, ": ", 2) == 0)
      reason += length + 2;
    return fail(Code::Unsupported, "cannot open the library %s: %s", name, reason);
  }
  if (handle_) dlclose(handle_);
  handle_ = handle;
  return {};
}

void* DynamicLibrary::find(const char* symbol) const { return handle_ ? dlsym(handle_, symbol) : nullptr; }

// Links are followed, since the name of the file itself often has the version.
void DynamicLibrary::path_of(const char* symbol, char* out, size_t bytes) const {
  const void* const address = find(symbol);
  Dl_info found = {};
  const bool known = address && dladdr(address, &found) && found.dli_fname;
  char* real = known ? realpath(found.dli_fname, nullptr) : nullptr;
  format_text(out, bytes, "%s", real ? real : known ? found.dli_fname : "");
  std::free(real);
}

}  // namespace greta
