// JSON text to values and back.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace greta::jinja {

constexpr uint32_t kMaxJsonDepth = 256;  // brackets within brackets

// Reads one document. Keys keep their order. If a key repeats, its last value counts. An integer beyond 64
// bits becomes a float. Errors name line and column, and leave `*out` unchanged.
Status parse_json(std::string_view text, Value* out);

struct JsonStyle {
  int32_t indent = -1;      // spaces for each level; below 0, all is on one line
  std::string indent_text;  // stands in place of the spaces if it is not empty
  bool ascii = false;       // what is not ASCII is written as \uXXXX
  bool sort_keys = false;
  std::optional<std::string> item_separator;  // else ", ", or "," with an indent
  std::string key_separator = ": ";
  uint64_t max_bytes = 1ull << 30;
};

// Writes what Python's json.dumps writes. Fails for values that JSON cannot express (undefined, generators,
// macros), for keys that are no scalars, beyond kMaxJsonDepth, and beyond max_bytes.
Status to_json(const Value& value, const JsonStyle& style, std::string* out);  // appends

// Writes in the plain style; what JSON cannot express becomes null.
std::string to_json(const Value& value);

// Appends a text in quotes, with the escapes of JSON.
void append_json_string(std::string_view text, bool ascii, std::string* out);

}  // namespace greta::jinja
