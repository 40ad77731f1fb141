// greta-cli doctor: what keeps GPUs from being used, what to do about it, and what a report of a fault needs.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/build_commit.h"
#include "commands/commands.h"
#include "console.h"
#include "json.h"
#include "model.h"

namespace greta::cli {
namespace {

struct Finding {
  std::string subject, key, value, advice;
};
using Findings = std::vector<Finding>;

// Variables that change which devices drivers show, and what to do about one that is set.
struct Variable {
  const char* name;
  const char* advice;
};
constexpr Variable kVariables[] = {
    {"HSA_OVERRIDE_GFX_VERSION",
     "unset it: it makes the runtime take the GPU for another kind, whose code may "
     "compute wrong or hang"},
    {"HIP_VISIBLE_DEVICES", ""},
    {"ROCR_VISIBLE_DEVICES", ""},
    {"GPU_DEVICE_ORDINAL", ""},
    {"CUDA_VISIBLE_DEVICES", ""},
    {"HSA_ENABLE_SDMA", ""},
    {"AMD_LOG_LEVEL", ""},
    {"VK_DRIVER_FILES", ""},
    {"VK_ICD_FILENAMES", ""},
    {"VK_LOADER_DRIVERS_DISABLE", ""},
    {"MESA_VK_DEVICE_SELECT", ""},
    {"LD_LIBRARY_PATH", ""},
    {"LD_PRELOAD", ""},
};

void add_program(Findings* to) {
  const uint32_t version = greta_version();
  to->push_back(
      {"greta", "version", format("%u.%u.%u", version / 10000, version / 100 % 100, version % 100), ""});
  if (*kBuildCommit) to->push_back({"greta", "commit", kBuildCommit, ""});
  for (const Variable& variable : kVariables)
    if (const char* value = std::getenv(variable.name))
      to->push_back({"environment", variable.name, value, variable.advice});
}

void add_machine(Findings* to) {
  const auto add = [](void* list, const greta_finding* found) {
    static_cast<Findings*>(list)->push_back({found->subject, found->key, found->value, found->advice});
    return interrupted() ? 1 : 0;
  };
  check(greta_machine_examine(add, to));
}

// Opens each device that can be used, and says what its driver and a measurement tell.
void add_measured(Findings* to) {
  uint32_t count = 0;
  check(greta_device_count(&count));
  for (uint32_t i = 0; i < count; ++i) {
    auto listed = sized<greta_device_info>();
    check(greta_device_describe(i, &listed));
    if (!listed.usable) continue;
    DeviceOptions options;
    options.device = listed.id;
    try {
      const Runtime runtime = open_runtime(options);
      uint64_t bytes_per_second = 0;
      check(greta_runtime_measure_bandwidth(runtime.get(), &bytes_per_second));
      to->push_back({listed.id, "free memory", size_text(describe(runtime.get()).memory_free_bytes), ""});
      to->push_back(
          {listed.id, "measured bandwidth", format("%.1f GB/s", double(bytes_per_second) / 1e9), ""});
    } catch (const Failed& error) {
      to->push_back({listed.id, "measured bandwidth", "failed", error.what()});
    }
  }
}

std::string to_text(const Findings& findings) {
  std::string steps, text, subject;
  int number = 0;
  for (const Finding& f : findings) {
    if (f.subject != subject) text += "\n" + printable(subject = f.subject) + "\n";
    text += format("  %-24s %s\n", printable(f.key).c_str(), printable(f.value).c_str());
    if (f.advice.empty()) continue;
    steps += format("%2d. %s, %s: %s\n", ++number, printable(f.subject).c_str(), printable(f.key).c_str(),
                    printable(f.value).c_str());
    if (f.value.find(f.advice) == std::string::npos) steps += "    " + printable(f.advice) + "\n";
  }
  return (number ? "To do, in this order:\n" + steps : std::string("Nothing to do.\n")) + text;
}

Json to_json(const Findings& findings) {
  Json list = Json::array();
  bool healthy = true;
  for (const Finding& f : findings) {
    list.push_back({{"subject", f.subject}, {"key", f.key}, {"value", f.value}, {"advice", f.advice}});
    healthy = healthy && f.advice.empty();
  }
  return {{"healthy", healthy}, {"findings", list}};
}

int doctor(bool as_json, bool measure) {
  Findings findings;
  add_program(&findings);
  add_machine(&findings);
  if (measure) add_measured(&findings);
  put(as_json ? json_text(to_json(findings)) : to_text(findings));
  return kExitOk;
}

}  // namespace

Action doctor_command(CLI::App& app) {
  struct Options {
    VerbosityOptions verbosity;
    bool json = false, measure = false;
  };
  auto options = std::make_shared<Options>();
  app.add_flag("--json", options->json, "print the findings as JSON");
  app.add_flag("--measure", options->measure, "also open each device, and measure how fast it reads memory");
  add_options(app, options->verbosity);
  app.footer(
      "The exit code is 0 also where something is to be done. A report of a fault should have this output.");
  return [options] {
    options->verbosity.apply();
    return doctor(options->json, options->measure);
  };
}

}  // namespace greta::cli
