// The checks of all ops on a device that is open: what `greta-cli selftest` runs.
#pragma once
#include "selftest/checks.h"

namespace greta::selftest {

struct OpResult {
  const char* op;        // "matmul"
  uint32_t kernels = 0;  // rows of the kernel table that were checked, fused ones with matmul
  uint64_t launches = 0;
  std::string failure;  // "" if all was right
};

// Checks one op by the name that OpResult has ("attention" too is "kv_write, attention"), or kernels by theirs
// ("matmul_rows_q4_k", "matmul_rows_*"), or with "" all. Calls report after each op; its false ends the run.
// Cancelled then.
using Report = bool (*)(void* user, const OpResult& result);
Status run_selftest(Device& device, const std::string& name, Report report, void* user);

}  // namespace greta::selftest
