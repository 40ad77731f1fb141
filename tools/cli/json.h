// JSON as the commands print it.
#pragma once
#include <string>

#include "common/json.h"

namespace greta::cli {

using tools::Json;

// With the end of its last line. An indent of -1 gives one line.
inline std::string json_text(const Json& json, int indent = 2) {
  return tools::json_text(json, indent) + "\n";
}

}  // namespace greta::cli
