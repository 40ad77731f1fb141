// greta-cli selftest: checks every kernel of a device against float64 arithmetic, to find drivers that
// compute wrong.
#include <chrono>
#include <memory>

#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "model.h"

namespace greta::cli {
namespace {

struct SelftestOptions {
  VerbosityOptions verbosity;
  DeviceOptions device;
  bool json = false, quick = false;
  std::string op;
};

struct Table {
  const SelftestOptions& options;
  Progress progress{"selftest"};
  Json ops = Json::array();
  uint32_t kernels = 0, right = 0, failed = 0;
  std::string under_way = {};  // "matmul (12 of 80 kernels)"
};

int add_result(void* user, const greta_selftest_result* result) {
  Table& table = *static_cast<Table*>(user);
  table.progress.clear();
  table.under_way.clear();
  table.kernels += result->kernels;
  ++(result->passed ? table.right : table.failed);
  if (table.options.json) {
    table.ops.push_back({{"op", result->op},
                         {"passed", result->passed != 0},
                         {"kernels", result->kernels},
                         {"launches", result->launches},
                         {"failure", result->failure}});
  } else {
    write_output(format("%-20s %s  %4u kernels, %6llu launches\n", result->op,
                        result->passed ? "ok    " : "FAILED", result->kernels,
                        static_cast<unsigned long long>(result->launches)));
    if (!result->passed) write_output(format("  %s\n", printable(result->failure).c_str()));
  }
  return interrupted() ? 1 : 0;
}

int show_progress(void* user, const greta_selftest_progress* now) {
  Table& table = *static_cast<Table*>(user);
  table.under_way = format("%s (%u of %u kernels)", now->op, now->kernels_run, now->kernels);
  table.progress.show(table.under_way + ": " + now->kernel);
  return interrupted() ? 1 : 0;
}

std::string summary(const Table& table, const std::string& device, double seconds) {
  const std::string failed = table.failed ? format("%u ops FAILED", table.failed) : "";
  if (interrupted()) {
    return "stopped" + (table.under_way.empty() ? "" : " in " + table.under_way) +
           format(", before that %u ops right%s%s, on ", table.right, failed.empty() ? "" : ", ",
                  failed.c_str()) +
           device + "\n";
  }
  if (table.failed) return failed + " on " + device + "\n";
  return format("all ops right on %s, %u kernels, %.1f s\n", device.c_str(), table.kernels, seconds);
}

int selftest(const SelftestOptions& options) {
  options.verbosity.apply();
  const Runtime runtime = open_runtime(options.device);
  say_later_notes();
  const greta_device_info info = describe(runtime.get());
  const std::string device = format("%s (%s)", info.id, printable(info.name).c_str());
  note("this checks " + device);
  Table table{options};
  auto run = sized<greta_selftest_options>();
  run.op = options.op.c_str();
  run.quick = options.quick;
  run.on_result = add_result;
  run.on_progress = show_progress;
  run.user = &table;
  uint32_t failed = 0;
  const auto start = std::chrono::steady_clock::now();
  const greta_status status = greta_runtime_selftest(runtime.get(), &run, &failed);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  table.progress.clear();
  if (!interrupted()) check(status);
  check_output();
  if (options.json) {
    put(json_text({{"device", info.id},
                   {"name", info.name},
                   {"driver", info.driver},
                   {"arch", info.arch},
                   {"passed", !interrupted() && failed == 0},
                   {"stopped", interrupted()},
                   {"seconds", seconds.count()},
                   {"ops", table.ops}}));
  } else {
    put(summary(table, device, seconds.count()));
  }
  return interrupted() ? kExitInterrupted : failed ? kExitFailed : kExitOk;
}

}  // namespace

Action selftest_command(CLI::App& app) {
  auto options = std::make_shared<SelftestOptions>();
  app.add_flag("--json", options->json, "print the results as JSON");
  app.add_option("--op", options->op,
                 "check only this op, or kernels by name: matmul_rows_q4_k_planes, matmul_rows_*");
  app.add_flag("--quick", options->quick,
               "check every kernel in one shape only, and without the repeats that must give the same bits");
  add_options(app, options->device);
  add_options(app, options->verbosity);
  app.footer(
      "The exit code is 1 if a kernel computes wrong. Please report that, with the output of --json.\n"
      "Ctrl-C stops the check and says what was checked until then.");
  return [options] { return selftest(*options); };
}

}  // namespace greta::cli
