// `greta-cli bench history DIR`: saved results over time.
#pragma once
#include <string>

namespace greta::cli {

// Reads the results that bench --save keeps in the folder, and says of each test how fast it was at each time
// and where that changed by more than `threshold` percent. `output` is md, json or svg; `report` is a file
// for a page about it, "" for none. Throws Failed.
void bench_history(const std::string& folder, double threshold, const std::string& output,
                   const std::string& report);

}  // namespace greta::cli
