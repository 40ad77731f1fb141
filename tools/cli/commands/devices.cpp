// greta-cli devices: lists every device that was looked for, and why some cannot be used.
#include <cstring>
#include <memory>
#include <vector>

#include "commands/commands.h"
#include "console.h"
#include "drivers.h"
#include "json.h"
#include "options.h"

namespace greta::cli {
namespace {

Json to_json(const greta_device_info& device) {
  return {{"id", device.id},
          {"usable", device.usable != 0},
          {"reason", device.reason},
          {"name", device.name},
          {"driver", device.driver},
          {"arch", device.arch},
          {"pci", device.pci},
          {"memory_bytes", device.memory_bytes},
          {"memory_free_bytes", device.memory_free_bytes ? Json(device.memory_free_bytes) : Json(nullptr)},
          {"unit_count", device.unit_count},
          {"unified_memory", device.unified_memory != 0},
          {"cpu_type", device.cpu_type != 0}};
}

// Of a GPU that an earlier device also is, behind another driver: "; the same GPU as vulkan0".
std::string same_gpu(const greta_device_info& device, const std::vector<greta_device_info>& earlier) {
  for (const greta_device_info& other : earlier)
    if (other.usable && *device.pci && !strcmp(device.pci, other.pci))
      return format("; the same GPU as %s", other.id);
  return "";
}

std::string to_text(const greta_device_info& device, const std::vector<greta_device_info>& earlier) {
  if (!device.usable) {
    const std::string name = *device.name ? std::string(device.name) + ": " : "";
    return format("%-9s not usable: %s\n", device.id, printable(name + device.reason).c_str());
  }
  const bool as_gpu = device.cpu_type && std::string_view(device.id) != "cpu";
  const std::string free =
      device.memory_free_bytes ? ", " + size_text(device.memory_free_bytes) + " free" : "";
  return format("%-9s %s (%s, %u units, %s%s)%s%s\n", device.id, printable(device.name).c_str(), device.arch,
                device.unit_count, size_text(device.memory_bytes).c_str(), free.c_str(),
                as_gpu ? ": it runs on the processor, and auto never takes it" : "",
                same_gpu(device, earlier).c_str());
}

int devices(bool as_json) {
  const std::vector<greta_device_info> all = ask_devices().devices;
  Json list = Json::array();
  std::string text;
  for (size_t i = 0; i < all.size(); ++i) {
    list.push_back(to_json(all[i]));
    text += to_text(all[i], {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i)});
  }
  put(as_json ? json_text(list) : text);
  return kExitOk;
}

}  // namespace

Action devices_command(CLI::App& app) {
  struct Options {
    VerbosityOptions verbosity;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  app.add_flag("--json", options->json, "print the list as JSON");
  add_options(app, options->verbosity);
  return [options] {
    options->verbosity.apply();
    return devices(options->json);
  };
}

}  // namespace greta::cli
