// greta-cli kernel: checks and times one kernel of the device, with its own code or with code from a file.
#include <chrono>
#include <memory>

#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "model.h"
#include "slips.h"

namespace greta::cli {
namespace {

struct KernelOptions {
  VerbosityOptions verbosity;
  DeviceOptions device;
  std::string name, code, shape;
  bool json = false;
};

// "4096,4096,1"
void read_shape(const std::string& text, greta_kernel_options* out) {
  if (text.empty()) return;
  char more;
  if (sscanf(text.c_str(), "%u,%u,%u%c", &out->n, &out->depth, &out->tokens, &more) != 3 || !out->n)
    throw Misused("--shape takes rows, columns and tokens such as 4096,4096,1, not \"" + text + "\"");
}

std::string rates(const greta_kernel_result& r, double ns) {
  return format("%10.2f us  %8.1f GB/s  %8.3f TFLOP/s", ns / 1e3, static_cast<double>(r.bytes) / ns,
                static_cast<double>(r.flops) / ns / 1e3);
}

std::string words(const greta_kernel_result& r, const KernelOptions& options) {
  if (!r.passed) return "WRONG: " + printable(r.failure) + "\n";
  std::string text = format("right, %u rows of the table in %llu launches\n", r.kernels,
                            static_cast<unsigned long long>(r.launches));
  if (!r.rounds) return options.shape.empty() ? text : text + "not timed: " + printable(r.failure) + "\n";
  if (*r.machine_code) text += "code      " + printable(r.machine_code) + "\n";
  text += "built in  " + rates(r, r.ns) + "\n";
  if (!options.code.empty()) {
    text += "the file  " + rates(r, r.given_ns) + "\n";
    text += format("ratio     %.3f [%.3f, %.3f] in %u rounds\n", r.ratio, r.low, r.high, r.rounds);
  }
  return text + format("NMSE      %.2g\n", r.error);
}

int kernel(const KernelOptions& options) {
  options.verbosity.apply();
  auto given = sized<greta_kernel_options>();
  read_shape(options.shape, &given);
  const std::string code = options.code.empty() ? "" : read_file(options.code);
  if (!options.code.empty() && code.empty()) throw Failed(options.code + " is empty");
  given.name = options.name.c_str();
  given.code = code.empty() ? nullptr : code.data();
  given.code_bytes = code.size();
  const Runtime runtime = open_runtime(options.device);
  say_later_notes();
  const auto start = std::chrono::steady_clock::now();
  auto result = sized<greta_kernel_result>();
  check(greta_runtime_try_kernel(runtime.get(), &given, &result));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  detail(format("%.2f s", seconds.count()));
  if (options.json)
    put(json_text({{"kernel", options.name},
                   {"passed", result.passed != 0},
                   {"failure", result.failure},
                   {"kernels", result.kernels},
                   {"launches", result.launches},
                   {"rounds", result.rounds},
                   {"ns", result.ns},
                   {"given_ns", result.given_ns},
                   {"ratio", result.ratio},
                   {"low", result.low},
                   {"high", result.high},
                   {"nmse", result.error},
                   {"machine_code", result.machine_code},
                   {"bytes", result.bytes},
                   {"flops", result.flops}}));
  else
    put(words(result, options));
  return result.passed ? kExitOk : kExitFailed;
}

}  // namespace

Action kernel_command(CLI::App& app) {
  auto options = std::make_shared<KernelOptions>();
  app.add_option("name", options->name, "a kernel of the device, such as matmul_rows_q4_k_planes")
      ->type_name("NAME")
      ->required()
      ->check(not_empty());
  app.add_option("--code", options->code, "run this code in its place: SPIR-V, or a code object of HIP")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("--shape", options->shape,
                 "time a product with a weight of N rows and DEPTH columns in a step of TOKENS")
      ->type_name("N,DEPTH,TOKENS")
      ->check(not_empty());
  app.add_flag("--json", options->json, "print the result as JSON");
  add_options(app, options->device);
  add_options(app, options->verbosity);
  app.footer(
      "Every row of the kernel table with this name is checked against float64 in one shape, as selftest "
      "--quick does.\nThe exit code is 1 if it computes wrong. docs/adding-a-kernel.md shows it at work.");
  return [options] { return kernel(*options); };
}

}  // namespace greta::cli
