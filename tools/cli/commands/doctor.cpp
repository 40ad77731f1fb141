// greta-cli doctor: what keeps GPUs from being used, what to do about it, and what a report of a fault needs.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/build_commit.h"
#include "bundle.h"
#include "commands/commands.h"
#include "console.h"
#include "doctor_parts.h"
#include "drivers.h"
#include "json.h"
#include "model.h"
#include "options.h"
#include "output_file.h"
#include "slips.h"

namespace greta::cli {
namespace {

using Findings = std::vector<MachineFinding>;

// Variables that change which devices drivers show, and what to do about one that is set.
struct DriverVariable {
  const char* name;
  const char* advice;
};
constexpr DriverVariable kDriverVariables[] = {
    {"HSA_OVERRIDE_GFX_VERSION",
     "unset it: it makes the runtime take the GPU for another kind, whose code may "
     "compute wrong or hang"},
    {"HIP_VISIBLE_DEVICES", ""},
    {"ROCR_VISIBLE_DEVICES", ""},
    {"GPU_DEVICE_ORDINAL", ""},
    {"CUDA_VISIBLE_DEVICES", ""},
    {"HSA_ENABLE_DXG_DETECTION", ""},
    {"HSA_ENABLE_SDMA", ""},
    {"GPU_MAX_HW_QUEUES", ""},
    {"AMD_LOG_LEVEL", ""},
    {"ROCM_PATH", ""},
    {"HIP_PATH", ""},
    {"VIRTUAL_ENV", ""},
    {"AMD_VULKAN_ICD", ""},
    {"DISABLE_LAYER_AMD_SWITCHABLE_GRAPHICS_1", ""},
    {"RADV_DEBUG", ""},
    {"RADV_PERFTEST", ""},
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
  for (const DriverVariable& variable : kDriverVariables)
    if (const char* value = std::getenv(variable.name))
      to->push_back({"environment", variable.name, value, variable.advice});
}

void add(const Findings& from, Findings* to) { to->insert(to->end(), from.begin(), from.end()); }

// Drivers are asked in child processes, so nothing that they do ends this one.
void add_machine(Findings* to, bool measure) {
  const AskedDevices asked = ask_devices();
  add(ask_machine(asked.broken), to);
  for (const greta_device_info& device : asked.devices)
    if (measure && device.usable) add(ask_measured(device.id), to);
}

std::string to_text(const Findings& findings) {
  std::string steps, text, subject;
  int number = 0;
  for (const MachineFinding& f : findings) {
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
  for (const MachineFinding& f : findings) {
    list.push_back({{"subject", f.subject}, {"key", f.key}, {"value", f.value}, {"advice", f.advice}});
    healthy = healthy && f.advice.empty();
  }
  return {{"healthy", healthy}, {"findings", list}};
}

struct DoctorOptions {
  VerbosityOptions verbosity;
  ModelOptions model;
  bool json = false, measure = false;
  std::string bundle;  // a file; "": none is written
};

// What a report needs, in one file that holds nothing private.
void write_bundle(const Findings& findings, const std::string& path) {
  const Findings shown = without_private(findings);
  const std::string archive = tar_bytes(
      {{"greta-doctor/doctor.txt", to_text(shown)}, {"greta-doctor/doctor.json", json_text(to_json(shown))}});
  write_whole(path, archive);
  note("wrote " + path + ": look at it with tar -xOf before you send it");
}

int doctor(const DoctorOptions& options) {
  Findings findings;
  add_program(&findings);
  add_machine(&findings, options.measure);
  add(find_caches(cache_folder()), &findings);
  if (!options.model.path.empty()) add(measure_reading(options.model.path), &findings);
  put(options.json ? json_text(to_json(findings)) : to_text(findings));
  if (!options.bundle.empty()) write_bundle(findings, options.bundle);
  return kExitOk;
}

}  // namespace

Action doctor_command(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  app.add_flag("--json", options->json, "print the findings as JSON");
  app.add_flag("--measure", options->measure, "also open each device, measure it, and run a quick self-test");
  app.add_option("-m,--model", options->model.path, "also measure how fast this file is read")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("--bundle", options->bundle,
                 "also write this archive for a report, without names of users, folders and the environment")
      ->type_name("F.tar")
      ->check(not_empty());
  add_options(app, options->verbosity);
  app.footer(
      "The exit code is 0 also where something is to be done. A report of a fault should have this output.");
  return [options] {
    options->verbosity.apply();
    return doctor(*options);
  };
}

}  // namespace greta::cli
