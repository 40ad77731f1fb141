// Test kernels that are compiled for a GPU, as rows of the tests' kernel table.
#include <cstring>
#include <string>

#include "runtime/runtime.h"
#include "support/test_kernels.h"

using namespace greta;

const KernelCode* embedded_test_code(const DeviceInfo& info, const char* name) {
  const KernelRow* row = find_test_kernel((std::string(name) + "_test").c_str(), info.backend, info.arch);
  return row ? &row->code : nullptr;
}

bool is_there(const char* name, const DeviceOptions& options) {
  for (const Backend* backend : backends()) {
    DeviceInfo info;
    if (!strcmp(backend->name, name) && backend->count(options) && backend->describe(0, options, &info).ok())
      return embedded_test_code(info, "index") != nullptr;
  }
  return false;
}
