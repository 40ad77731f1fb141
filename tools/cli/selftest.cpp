// greta-cli selftest: every kernel of a device against float64, to tell a driver that computes wrong.
#include <chrono>
#include <memory>

#include "commands.h"
#include "console.h"
#include "json.h"
#include "model.h"

namespace greta::cli {
namespace {

struct SelftestOptions {
  VerbosityOptions verbosity;
  DeviceOptions device;
  bool json = false;
  std::string op;
};

struct Table {
  const SelftestOptions& options;
  Json ops = Json::array();
  uint32_t kernels = 0;
};

int add_result(void* user, const greta_selftest_result* result) {
  Table& table = *static_cast<Table*>(user);
  table.kernels += result->kernels;
  if (table.options.json) {
    table.ops.push_back({{"op", result->op},
                         {"passed", result->passed != 0},
                         {"kernels", result->kernels},
                         {"launches", result->launches},
                         {"failure", result->failure}});
  } else {
    put(format("%-20s %s  %4u kernels, %6llu launches\n", result->op, result->passed ? "ok    " : "FAILED",
               result->kernels, static_cast<unsigned long long>(result->launches)));
    if (!result->passed) put(format("  %s\n", printable(result->failure).c_str()));
  }
  return interrupted() ? 1 : 0;
}

int selftest(const SelftestOptions& options) {
  options.verbosity.apply();
  const Runtime runtime = open_runtime(options.device);
  const greta_device_info device = describe(runtime.get());
  if (!options.json) detail(format("%s: %s", device.id, printable(device.name).c_str()));
  Table table{options};
  uint32_t failed = 0;
  const auto start = std::chrono::steady_clock::now();
  check(greta_runtime_selftest_op(runtime.get(), options.op.c_str(), add_result, &table, &failed));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (options.json) {
    put(json_text({{"device", device.id},
                   {"name", device.name},
                   {"driver", device.driver},
                   {"arch", device.arch},
                   {"passed", failed == 0},
                   {"seconds", seconds.count()},
                   {"ops", table.ops}}));
  } else {
    put(failed
            ? format("%u ops FAILED on %s\n", failed, device.id)
            : format("all ops right on %s, %u kernels, %.1f s\n", device.id, table.kernels, seconds.count()));
  }
  return failed ? kExitFailed : kExitOk;
}

}  // namespace

Action selftest_command(CLI::App& app) {
  auto options = std::make_shared<SelftestOptions>();
  app.add_flag("--json", options->json, "as JSON");
  app.add_option("--op", options->op, "check only this op, or kernels: matmul_rows_q4_k_planes, matmul_rows_*");
  add_options(app, options->device);
  add_options(app, options->verbosity);
  app.footer("Exits with 1 if a kernel computes wrong. Say so in a report, with the output of --json.");
  return [options] { return selftest(*options); };
}

}  // namespace greta::cli
