#include "platform/files/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>

#include "platform/text/format_text.h"

namespace greta {

DynamicLibrary::~DynamicLibrary() {
  if (handle_) dlclose(handle_);
}

Status DynamicLibrary::open(const char* name, bool* is_there) {
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (is_there) *is_there = handle != nullptr;
  if (!handle) {
    const char* reason = dlerror();
    if (!reason) reason = "no reason";
    const size_t length = std::strlen(name);  // the loader's text begins with the name, too
    const bool of_itself =
        std::strncmp(reason, name, length) == 0 && std::strncmp(reason + length, ": ", 2) == 0;
    if (of_itself) reason += length + 2;
    if (is_there) *is_there = !of_itself || !std::strstr(reason, "cannot open shared object file");
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

std::string loaded_library(const char* start) {
  struct Search {
    const char* start;
    std::string found;
  } search = {start, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* library, size_t, void* user) {
        Search& in = *static_cast<Search*>(user);
        const char* slash = std::strrchr(library->dlpi_name, '/');
        const char* const name = slash ? slash + 1 : library->dlpi_name;
        if (std::strncmp(name, in.start, std::strlen(in.start)) != 0) return 0;
        in.found = library->dlpi_name;
        return 1;
      },
      &search);
  return search.found;
}

void keep_loaded(const std::string& path) {
  if (path.empty()) return;
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) dlclose(handle);
}

}  // namespace greta
