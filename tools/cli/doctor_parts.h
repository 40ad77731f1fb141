// What `greta-cli doctor` finds out by itself: caches, the speed of reading a model, and what a device
// reaches.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "drivers.h"

namespace greta::cli {

std::vector<MachineFinding> find_caches(const std::string& folder);  // "": there is none
// Reads the beginning of the file past the page cache.
std::vector<MachineFinding> measure_reading(const std::string& path);

// Opens a device, and tells how much memory is free, how fast it is read, the clock under load, and what a
// quick self-test says. A driver may die or hang meanwhile.
void measure_device(const std::string& device, const std::function<void(const MachineFinding&)>& found);

}  // namespace greta::cli
