// A page about a profile: one HTML file that asks for nothing from elsewhere.
#pragma once
#include <string>

#include "json.h"

namespace greta::cli {

// `profile` is what `greta-cli profile -o json` prints, `baseline` another one or null. Throws Failed if one
// is something else.
std::string report_page(const Json& profile, const Json& baseline);

}  // namespace greta::cli
