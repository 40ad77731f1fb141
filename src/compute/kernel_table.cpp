#include "compute/kernel_table.h"

#include <cstddef>

namespace greta {

#define HOST_KERNEL(function) \
  extern "C" void function(const void* block, uint32_t first_group, uint32_t group_count, Scratch* scratch);
#define EMBEDDED_KERNEL(name) extern "C" const uint8_t name[], name##_end[];
#include "kernel_code.inc"
#undef HOST_KERNEL
#undef EMBEDDED_KERNEL

static const KernelRow kRows[] = {
#include "kernel_rows.inc"
};

std::span<const KernelRow> kernel_table() { return kRows; }

}  // namespace greta
