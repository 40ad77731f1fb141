// The checks of all ops on an open device, which `greta-cli selftest` runs.
#pragma once
#include "selftest/checks/checks.h"
#include "selftest/kernel_try.h"
#include "selftest/tuning.h"
#include "selftest/weights.h"

namespace greta::selftest {

struct OpResult {
  const char* op;        // "matmul"
  uint32_t kernels = 0;  // rows of the kernel table that were checked; fused ones count for the op that leads
  uint64_t launches = 0;
  std::string failure;  // what was wrong; "" if nothing was
};

struct OpProgress {
  const char *op, *kernel;        // `kernel` was launched last; "" before the first
  uint32_t kernels_run, kernels;  // how many have run, and how many will in all
  uint64_t launches;
};

// Checks what `name` names: an op of OpResult, kernels ("matmul_rows_q4_k", "matmul_rows_*"), or everything
// (""). It calls `report` after each op and `progress` about 20 times a second, both on this thread. If
// either returns false, the run soon ends with Cancelled, and the op that was stopped is reported only if
// something was wrong. For `quick` see Rig::hurry().
using Report = bool (*)(void* user, const OpResult& result);
using Progress = bool (*)(void* user, const OpProgress& progress);
Status run_selftest(Device& device, const std::string& name, Report report, void* user,
                    Progress progress = nullptr, bool quick = false);

// Checks the kernels of one name, each in one shape, as run_selftest() does; `code` is packed and replaces
// theirs unless it is empty.
Status check_kernels(Device& device, const std::string& name, const CodeBytes& code, OpResult* out);

}  // namespace greta::selftest
