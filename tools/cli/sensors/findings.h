// What measurements of a device say beside what it should reach, for `greta-cli doctor`.
#pragma once
#include <string>

#include "drivers.h"
#include "sensors/gpu_sensors.h"

namespace greta::cli {

// The measured bandwidth in GB/s. `nominal` is that of the maker; 0: it is not known.
MachineFinding bandwidth_finding(const std::string& device, double measured, double nominal);
// The highest clock under load.
MachineFinding clock_finding(const std::string& device, double mhz, const GpuLimits& limits);

}  // namespace greta::cli
