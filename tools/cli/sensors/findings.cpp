#include "sensors/findings.h"

#include "console.h"

namespace greta::cli {

MachineFinding bandwidth_finding(const std::string& device, double measured, double nominal) {
  constexpr double kLeast = 0.6;
  MachineFinding finding = {device, "measured bandwidth", format("%.1f GB/s", measured), ""};
  if (nominal <= 0) return finding;
  finding.value += format(", %.0f %% of the maker's %.0f GB/s", 100 * measured / nominal, nominal);
  if (measured < kLeast * nominal)
    finding.advice =
        "look for other programs on it, a power limit, a low memory clock or a slot of few lanes";
  return finding;
}

MachineFinding clock_finding(const std::string& device, double mhz, const GpuLimits& limits) {
  constexpr double kLeast = 0.6;
  MachineFinding finding = {device, "clock under load", format("%.0f MHz", mhz), ""};
  if (limits.clock_mhz <= 0) return finding;
  finding.value += format(" of at most %.0f", limits.clock_mhz);
  if (mhz < kLeast * limits.clock_mhz)
    finding.advice = "look for a power limit, heat, or a power profile that keeps clocks low";
  return finding;
}

}  // namespace greta::cli
