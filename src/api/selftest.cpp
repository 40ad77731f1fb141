// The function of greta.h that tests the kernels of a device.
#include "selftest/selftest.h"

#include "api/handles.h"
#include "api/options.h"

using namespace greta;

namespace {
struct Reporter {
  greta_selftest_options options = {};
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
  const greta_selftest_options& o = reporter.options;
  return !o.on_result || call_back("on_result", [&] { return o.on_result(o.user, &result); }) == 0;
}

bool report_progress(void* context, const selftest::OpProgress& from) {
  greta_selftest_progress progress = {};
  progress.struct_size = sizeof progress;
  progress.kernels_run = from.kernels_run;
  progress.kernels = from.kernels;
  progress.op = from.op;
  progress.kernel = from.kernel;
  progress.launches = from.launches;
  const greta_selftest_options& o = static_cast<Reporter*>(context)->options;
  return call_back("on_progress", [&] { return o.on_progress(o.user, &progress); }) == 0;
}
}  // namespace

greta_status greta_runtime_selftest(greta_runtime* runtime, const greta_selftest_options* options,
                                    uint32_t* out_failed) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    GRETA_TRY(need(out_failed, "out_failed"));
    Reporter reporter;
    GRETA_TRY(read_options(options, &reporter.options));
    const greta_selftest_options& o = reporter.options;
    bool quick = false;
    GRETA_TRY(check_reserved(o.reserved | o.reserved2));
    GRETA_TRY(read_flag(o.quick, "quick", &quick));
    GRETA_TRY(selftest::run_selftest(*runtime->first().device, o.op ? o.op : "", report, &reporter,
                                     o.on_progress ? report_progress : nullptr, quick));
    *out_failed = reporter.failed;
    return {};
  });
}
