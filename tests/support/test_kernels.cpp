#include "support/test_kernels.h"

#include <cstddef>
#include <cstring>

#include "kernels/abi/scaled_add.h"
#include "support/device_kernels.h"

namespace greta {

#define HOST_KERNEL(function) \
  extern "C" void function(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch);
#define EMBEDDED_KERNEL(name) extern "C" const uint8_t name[], name##_end[];
#include "test_kernel_code.inc"
#undef HOST_KERNEL
#undef EMBEDDED_KERNEL

static const KernelRow kRows[] = {
#include "test_kernel_rows.inc"
};

std::span<const KernelRow> test_kernel_table() { return kRows; }

const KernelRow* find_test_kernel(const char* name, const char* backend, const char* arch) {
  for (const KernelRow& row : kRows)
    if (!std::strcmp(row.name, name) && !std::strcmp(row.backend, backend) &&
        (!row.target[0] || runs_on(row.target, arch)))
      return &row;
  return nullptr;
}

}  // namespace greta
