// Asks the drivers of GPUs in a child process, since some die, hang or print when they are asked. The child
// is this program with the hidden command kAskDrivers. What it learns comes back as records through a pipe.
#pragma once
#include <string>
#include <vector>

#include "greta.h"

namespace greta::cli {

inline constexpr char kAskDrivers[] = "ask-drivers";

// What the environment says of drivers: ROCM_PATH, HIP_PATH, VIRTUAL_ENV, and variables that hide GPUs.
class Search {
 public:
  explicit Search(std::string without = "");  // kinds that are left alone: "hip,vulkan"
  void put(greta_runtime_options* to) const;  // which keeps pointers to this object

 private:
  std::string rocm_, environment_, without_, hiding_;
};

// A kind of device whose driver cannot be asked, or whose device cannot be opened.
struct BrokenDriver {
  std::string kind;  // "hip"
  std::string
      reason;  // "its driver /opt/rocm/lib/libamdhip64.so.7 ends the process that asks it (signal 11, ..)"
};
std::string names_of(const std::vector<BrokenDriver>& broken);  // "hip,vulkan"
std::string advice_for(const BrokenDriver& broken);

struct AskedDevices {
  std::vector<greta_device_info> devices;
  std::vector<BrokenDriver> broken;
  std::vector<std::string> libraries;  // that were loaded when devices were told
};
// All devices, in the order of greta_device_list. A kind that cannot be asked has one entry, which says why.
// With `expected_only`, kinds are left out of which the kernel shows no device, and the processor is.
AskedDevices ask_devices(bool expected_only = false);
// Opens the device that "auto" takes in a child process, since some drivers die or hang only then. A kind
// whose driver does is added to `broken`, and the next one is tried. What was opened well is remembered in a
// file of the folder, and not tried again until devices, drivers, kernel or program change; "" remembers
// nothing.
void try_opening(const std::string& folder, AskedDevices* asked);

struct MachineFinding {
  std::string subject, key, value, advice;
};
// What greta_machine_examine_with finds without broken drivers, and what is known of these.
std::vector<MachineFinding> ask_machine(const std::vector<BrokenDriver>& broken);
// Opens a device, and says how much memory is free and how fast it is read.
std::vector<MachineFinding> ask_measured(const std::string& device);

// The hidden command: argv[2] says what is asked, argv[3] what of.
[[noreturn]] void answer_about_drivers(int argc, char** argv);

}  // namespace greta::cli
