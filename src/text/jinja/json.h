// JSON text to values and back.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace greta::jinja {

constexpr uint32_t kMaxJsonDepth = 256;  // brackets within brackets

// One document. Keys keep their order, and of equal ones the last value counts. An integer beyond 64
// bits becomes a float. Errors name line and column; `*out` is then unchanged.
Status parse_json(std::string_view text, Value* out);

struct JsonStyle {
  int32_t indent = -1;      // spaces for each level; below 0: all on one line
  std::string indent_text;  // in place of spaces, if not empty
  bool ascii = false;       // \uXXXX for what is not ASCII
  bool sort_keys = false;
  std::optional<std::string> item_separator;  // ", ", or "," with an indent
  std::string key_separator = ": ";
  uint64_t max_bytes = 1ull << 30;
};

// As Python's json.dumps writes it. Fails for what JSON has no word for (undefined, generators,
// macros), for keys that are no scalars, beyond kMaxJsonDepth, and beyond max_bytes.
Status to_json(const Value& value, const JsonStyle& style, std::string* out);  // appends

// In the plain style; what JSON has no word for is null.
std::string to_json(const Value& value);

// A text in quotes, escaped as JSON wants it.
void append_json_string(std::string_view text, bool ascii, std::string* out);

}  // namespace greta::jinja
