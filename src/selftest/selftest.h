// The checks of all ops on a device that is open: what `greta-cli selftest` runs.
#pragma once
#include "selftest/checks/checks.h"

namespace greta::selftest {

struct OpResult {
  const char* op;        // "matmul"
  uint32_t kernels = 0;  // rows of the kernel table that were checked, fused ones with matmul
  uint64_t launches = 0;
  std::string failure;  // "" if all was right
};

struct OpProgress {
  const char *op, *kernel;        // that was launched last, "" before the first
  uint32_t kernels_run, kernels;  // how many have run of those that will
  uint64_t launches;
};

// Checks one op by the name that OpResult has ("attention" too is "kv_write, attention"), or kernels by
// theirs
// ("matmul_rows_q4_k", "matmul_rows_*"), or with "" all. Calls, on this thread, report after each op and
// progress some 20 times a second; a false of either ends the run soon: Cancelled. Of an op that was stopped
// only what was wrong is reported. quick: as Rig::hurry() says.
using Report = bool (*)(void* user, const OpResult& result);
using Progress = bool (*)(void* user, const OpProgress& progress);
Status run_selftest(Device& device, const std::string& name, Report report, void* user,
                    Progress progress = nullptr, bool quick = false);

}  // namespace greta::selftest
