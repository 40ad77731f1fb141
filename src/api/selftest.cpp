// The self-test of a device, as greta.h gives it.
#include "selftest/selftest.h"

#include "api/handles.h"
#include "api/options.h"

using namespace greta;

namespace {
struct Reporter {
  int (*call)(void* user, const greta_selftest_result* result);
  void* user;
  uint32_t failed = 0;
};

bool report(void* context, const selftest::OpResult& from) {
  Reporter& reporter = *static_cast<Reporter*>(context);
  reporter.failed += !from.failure.empty();
  greta_selftest_result result = {};
  result.struct_size = sizeof result;
  result.passed = from.failure.empty();
  result.op = from.op;
  result.kernels = from.kernels;
  result.launches = from.launches;
  result.failure = from.failure.c_str();
  return !reporter.call || reporter.call(reporter.user, &result) == 0;
}
}  // namespace

greta_status greta_runtime_selftest_op(greta_runtime* runtime, const char* op,
                                       int (*on_result)(void* user, const greta_selftest_result* result),
                                       void* user, uint32_t* out_failed) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(runtime, "runtime"));
    GRETA_TRY(need(out_failed, "out_failed"));
    Reporter reporter{on_result, user};
    GRETA_TRY(selftest::run_selftest(*runtime->device, op ? op : "", report, &reporter));
    *out_failed = reporter.failed;
    return {};
  });
}

greta_status greta_runtime_selftest(greta_runtime* runtime,
                                    int (*on_result)(void* user, const greta_selftest_result* result),
                                    void* user, uint32_t* out_failed) {
  return greta_runtime_selftest_op(runtime, nullptr, on_result, user, out_failed);
}
