// Values as Python writes them: str() and repr().
#pragma once
#include <string>

#include "text/jinja/value.h"

namespace greta::jinja {

constexpr uint32_t kMaxNesting = 200;  // of values, wherever they are walked through

std::string float_text(double number);  // repr: "1.0", "1e+16", "nan"

void append_escaped(uint32_t code, std::string* out);  // as \x, \u or \U with hexadecimal digits

// Both append to *out. They fail with Code::Full if *out becomes longer than max_bytes, or if values are
// nested more deeply than kMaxNesting.
Status append_str(const Value& value, uint64_t max_bytes, std::string* out);
Status append_repr(const Value& value, uint64_t max_bytes, std::string* out, uint32_t depth = 0);

}  // namespace greta::jinja
