// The kernel table of the tests: rows of greta_kernel(... TEST), kept out of the library.
#pragma once
#include "compute/kernel_table.h"

namespace greta {

std::span<const KernelRow> test_kernel_table();

// The row that a device of this backend and architecture would get, or null if this build has none.
const KernelRow* find_test_kernel(const char* name, const char* backend, const char* arch);

}  // namespace greta
