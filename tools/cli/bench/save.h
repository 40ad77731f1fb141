// Keeps results of `greta-cli bench` in a folder, each run as JSON and as CSV, with what the machine was
// like.
#pragma once
#include <string>

#include "bench/report.h"
#include "json.h"

namespace greta::cli {

// The system, the processor, how it is clocked, how busy it is, and the compiler of this program; clocks,
// power and temperature of the runtime's GPU, and the file name of its tuning table. What cannot be read is
// null.
Json machine_now(const greta_runtime* runtime);
// What all results on one device have in common; with `saved` also the machine.
BenchRow row_of(const greta_runtime* runtime, const greta_model* model, bool saved);
// What makes times uncertain: a busy machine, or its battery; "" if nothing is known.
std::string disturbance();

// Writes both texts into the folder, which is made if need be, and returns the path of the JSON. The name has
// the time, the device and the commit: 20261127T133000Z-AMD_Radeon-0123456789.json. No file is replaced, and
// none is left that is not whole. Throws Failed.
std::string save_benches(const std::string& folder, const std::string& device, const std::string& json,
                         const std::string& csv);

}  // namespace greta::cli
