#include "tests/mock_hip/kernel_registry.h"

#include <cstring>

namespace mock_hip {

static HostKernel* first_kernel = nullptr;

void register_kernel(HostKernel* kernel) {
  kernel->next = first_kernel;
  first_kernel = kernel;
}

static const HostKernel* find_kernel(const char* name, std::string_view kind) {
  for (const HostKernel* kernel = first_kernel; kernel; kernel = kernel->next)
    if (!std::strcmp(kernel->name, name) && kernel->kind == kind) return kernel;
  return nullptr;
}

const HostKernel* find_kernel(const char* name, const char* target) {
  // Matrices have other layouts there, so kernels with matrix instructions are built for these too.
  for (const std::string_view kind : {"gfx950", "gfx12"})
    if (std::string_view(target).starts_with(kind))
      if (const HostKernel* kernel = find_kernel(name, kind)) return kernel;
  return find_kernel(name, host_kind(target));
}

}  // namespace mock_hip
