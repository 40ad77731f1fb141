// JSON as programs write it.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace greta::tools {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they came

// Text out of a file may have any bytes; what is not UTF-8 becomes U+FFFD. An indent of -1 gives one line.
inline std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace greta::tools
