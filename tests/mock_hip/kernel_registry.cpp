#include "tests/mock_hip/kernel_registry.h"

#include <cstring>

namespace mock_hip {

static HostKernel* first_kernel = nullptr;

void register_kernel(HostKernel* kernel) {
  kernel->next = first_kernel;
  first_kernel = kernel;
}

const HostKernel* find_kernel(const char* name, const char* target) {
  for (const HostKernel* kernel = first_kernel; kernel; kernel = kernel->next)
    if (!std::strcmp(kernel->name, name) && kernel->kind == host_kind(target)) return kernel;
  return nullptr;
}

}  // namespace mock_hip
