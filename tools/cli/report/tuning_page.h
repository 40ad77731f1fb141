// A page about a tuning table: one HTML file that asks for nothing from elsewhere.
#pragma once
#include <string>

#include "bench/roofline.h"
#include "json.h"

namespace greta::cli {

// `candidates` is what `greta-cli tune --list --json` prints.
std::string tuning_page(const std::string& title, const Json& candidates, const Roofs& roofs);

}  // namespace greta::cli
