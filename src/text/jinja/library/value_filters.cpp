// Filters of numbers and of any value. Also finds filters by name.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/json.h"
#include "text/jinja/library/library.h"

namespace greta::jinja {
namespace {

// ---- reading numbers out of texts, as Python's int() and float() ------------------------------

// Underscores may stand between digits. With `letters`, letters are digits too.
bool without_underscores(std::string_view text, bool letters, std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) {
      return at < text.size() && is_ascii_alnum(text[at]) && (letters || text[at] <= '9');
    };
    if (text[i] != '_')
      *out += text[i];
    else if (i == 0 || !digit(i - 1) || !digit(i + 1))
      return false;
  }
  return !out->empty();
}

bool read_int(std::string_view text, int64_t base, int64_t* out, bool* beyond) {
  text = strip(text, nullptr, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const char mark = text.size() > 1 && text[0] == '0' ? char(text[1] | 32) : 0;
  const int64_t marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  if (marked && (base == marked || base == 0)) {
    text.remove_prefix(text.substr(2, 1) == "_" ? 3 : 2);
    base = marked;
  } else if (base == 0) {
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != text.npos) return false;
    base = 10;
  }
  std::string digits;
  if (!without_underscores(text, base > 10, &digits) || digits[0] == '-' || digits[0] == '+') return false;
  if (negative) digits.insert(0, "-");
  const char* const end = digits.data() + digits.size();
  const auto done = std::from_chars(digits.data(), end, *out, int(base));
  *beyond = done.ec == std::errc::result_out_of_range;
  return done.ptr == end && done.ec != std::errc::invalid_argument;
}

bool read_float(std::string_view text, double* out) {
  std::string digits;
  if (!without_underscores(strip(text, nullptr, true, true), false, &digits)) return false;
  const size_t sign = digits[0] == '-' || digits[0] == '+';
  if (digits.find_first_of("xXpP(") != digits.npos) return false;
  if (sign && digits.size() > 1 && (digits[1] == '-' || digits[1] == '+')) return false;
  const char* const from = digits.data() + (digits[0] == '+');
  const char* const end = digits.data() + digits.size();
  const auto done = std::from_chars(from, end, *out);
  if (done.ptr != end || done.ec == std::errc::invalid_argument) return false;
  if (done.ec == std::errc::result_out_of_range) {  // too near to zero, or too far from it
    const size_t exponent = digits.find_first_of("eE");
    const bool tiny = exponent != digits.npos ? digits[exponent + 1] == '-'
                                              : digits.find_first_of("123456789") > digits.find('.');
    *out = tiny ? 0.0 : HUGE_VAL;
    if (digits[0] == '-') *out = -*out;
  }
  return true;
}

// ---- numbers ----------------------------------------------------------------------------------

Status int_filter(Call& call) {
  const Value& self = call.self;
  const Value otherwise = call[0] ? *call[0] : Value(0);
  const int64_t base = call.integer(1, 10);
  if (self.is_undefined()) return undefined_error(self);
  if (self.is_int() || self.is_bool()) return call.give(whole_of(self));
  double real = self.as_double();
  if (self.is_string()) {
    if (base != 0 && (base < 2 || base > 36)) return call.give(otherwise);
    bool beyond = false;
    int64_t number;
    if (read_int(self.as_string(), base, &number, &beyond))
      return beyond ? beyond_64_bits() : call.give(number);
    if (!read_float(self.as_string(), &real)) return call.give(otherwise);
  } else if (!self.is_float()) {
    return call.give(otherwise);
  }
  if (std::isnan(real)) return call.give(otherwise);
  return real >= -0x1p63 && real < 0x1p63 ? call.give(int64_t(real)) : beyond_64_bits();
}

// What the filter "float" makes of a value, or null if it cannot.
Status to_float(const Value& value, Value* out) {
  double number;
  if (value.is_undefined()) return undefined_error(value);
  if (is_numeric(value))
    *out = real_of(value);
  else if (value.is_string() && read_float(value.as_string(), &number))
    *out = number;
  else
    *out = nullptr;
  return {};
}

Status float_filter(Call& call) {
  GRETA_TRY(to_float(call.self, call.result));
  if (call.result->is_none()) *call.result = call[0] ? *call[0] : Value(0.0);
  return {};
}

Status abs_filter(Call& call) {
  if (call.self.is_float()) return call.give(std::fabs(call.self.as_double()));
  int64_t number;
  GRETA_TRY(want_int("what abs is of", call.self, &number));
  if (number == INT64_MIN) return beyond_64_bits();
  return call.give(number < 0 ? -number : number);
}

// Rounds to the nearest decimal by the exact value of the float. Halves go to even.
double round_decimal(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 323) return value;
  if (precision < -308) return std::copysign(0.0, value);
  if (precision >= 0) {
    char digits[800];
    format_text(digits, sizeof digits, "%.*f", int(precision), value);
    double rounded = 0;
    const char* const from = digits + (digits[0] == '-');
    std::from_chars(from, digits + std::char_traits<char>::length(digits), rounded);
    return std::copysign(rounded, value);
  }
  const double scale = std::pow(10.0, double(-precision));
  return std::nearbyint(value / scale) * scale;
}

Status round_integer(Call& call, int64_t number, int64_t precision) {
  if (precision >= 0) return call.give(number);
  if (precision < -18) return call.give(0);
  int64_t scale = 1, result;
  for (int64_t i = 0; i < -precision; ++i) scale *= 10;
  int64_t quotient = number / scale, rest = number % scale;
  if (rest < 0) rest += scale, --quotient;
  if (rest > scale - rest || (rest == scale - rest && quotient % 2)) ++quotient;
  return __builtin_mul_overflow(quotient, scale, &result) ? beyond_64_bits() : call.give(result);
}

Status round_filter(Call& call) {
  const int64_t precision = call.integer(0);
  const std::string_view method = call.text(1, "common");
  if (method != "common" && method != "ceil" && method != "floor")
    return fail(Code::Argument, "the method of round must be common, ceil or floor");
  int64_t number = 0;
  if (!call.self.is_float()) GRETA_TRY(want_int("what is rounded", call.self, &number));
  if (method == "common")
    return call.self.is_float() ? call.give(round_decimal(call.self.as_double(), precision))
                                : round_integer(call, number, precision);
  const double scale = std::pow(10.0, double(precision)), scaled = real_of(call.self) * scale;
  if (!std::isfinite(scaled)) return fail(Code::Argument, "a number beyond all integers cannot be rounded");
  return call.give((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

Status filesizeformat(Call& call) {
  Value number;
  GRETA_TRY(to_float(call.self, &number));
  const bool binary = call.is_true(0);
  const double bytes = number.as_double(), base = binary ? 1024 : 1000;
  double unit = base;
  size_t power = 0;
  while (power < 7 && bytes >= unit * base) unit *= base, ++power;
  if (number.is_none() || !std::isfinite(bytes) || bytes / unit > 1e30)
    return fail(Code::Argument, "not a size of a file");
  if (bytes == 1) return call.give("1 Byte");
  char text[64];
  if (bytes < base)
    format_text(text, sizeof text, "%.0f Bytes", std::trunc(bytes) + 0.0);  // the sum has no sign at -0
  else
    format_text(text, sizeof text, "%.1f %c%sB", base * bytes / (unit * base),
                power || binary ? "KMGTPEZY"[power] : 'k', binary ? "i" : "");
  return call.give(call.run.text(std::string_view(text)));
}

// ---- any value --------------------------------------------------------------------------------

Status default_filter(Call& call) {
  const bool replaced = call.self.is_undefined() || (call.is_true(1) && !call.self.is_true());
  return call.give(!replaced ? call.self : call[0] ? *call[0] : Value(""));
}

Status attr(Call& call) {
  const Value& self = call.self;
  const std::string_view name = call.text(0);
  if (self.is_undefined()) return undefined_error(self);
  if (self.find(name) && !find_method(self, name))  // an item of a dict is no attribute, but its methods are
    return call.give(call.run.undefined("'dict object' has no attribute '" + std::string(name) + "'"));
  return call.run.attribute(self, name, call.result);
}

// tojson as transformers defines it: Python's json.dumps, without escapes for HTML.
Status tojson(Call& call) {
  JsonStyle style;
  style.ascii = call.is_true(0);
  style.sort_keys = call.is_true(3);
  style.max_bytes = call.run.budget.limit;
  if (call[1] && call[1]->is_string()) {
    style.indent = 0;
    style.indent_text = call.text(1);
  } else if (call[1]) {
    int64_t width;
    GRETA_TRY(want_int("indent", *call[1], &width));
    style.indent = int32_t(std::clamp<int64_t>(width, 0, 1000));
  }
  if (call[2]) {
    const auto pair = call[2]->items();
    if (pair.size() != 2) return fail(Code::Argument, "tojson's separators are a pair of texts");
    std::string_view item, key;
    GRETA_TRY(want_text("a separator", pair[0], &item));
    GRETA_TRY(want_text("a separator", pair[1], &key));
    style.item_separator = item;
    style.key_separator = key;
  }
  std::string made;
  GRETA_TRY(to_json(call.self, style, &made));
  GRETA_TRY(call.run.room(made.size()));
  return call.give(call.run.text(std::move(made)));
}

// In the query of an address, a space becomes '+' and '/' is escaped too.
Status append_quoted_url(Run& run, const Value& value, bool query, std::string* out) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string text;
  GRETA_TRY(to_text(run, value, &text));
  for (const char c : text) {
    if (is_ascii_alnum(c) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query))
      *out += c;
    else if (c == ' ' && query)
      *out += '+';
    else
      ((*out += '%') += kHex[uint8_t(c) >> 4]) += kHex[c & 15];
  }
  return run.room(out->size());
}

Status urlencode(Call& call) {
  std::string made;
  std::vector<Value> pairs;
  if (!call.self.is_dict() && (call.self.is_string() || !sequence_of(call.self)))
    GRETA_TRY(append_quoted_url(call.run, call.self, false, &made));
  else if (!call.self.is_dict())
    GRETA_TRY(collect(call.run, call.self, &pairs));
  for (const Value::Entry& entry : call.self.entries())
    pairs.push_back(call.run.pair(entry.key, entry.value));
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto pair = pairs[i].items();
    if (pair.size() != 2) return fail(Code::Argument, "urlencode takes pairs");
    if (i) made += '&';
    GRETA_TRY(append_quoted_url(call.run, pair[0], true, &made));
    made += '=';
    GRETA_TRY(append_quoted_url(call.run, pair[1], true, &made));
  }
  return call.give(call.run.text(std::move(made)));
}

constexpr FunctionRow kValueFilters[] = {
    {"int", int_filter, 0, {{"default"}, {"base", kInt}}},
    {"float", float_filter, 0, {{"default"}}},
    {"abs", abs_filter},
    {"round", round_filter, 0, {{"precision", kInt}, {"method", kText}}},
    {"filesizeformat", filesizeformat, 0, {{"binary"}}},
    {"default", default_filter, 0, {{"default_value"}, {"boolean"}}},
    {"d", default_filter, 0, {{"default_value"}, {"boolean"}}},
    {"attr", attr, 1, {{"name", kText}}},
    {"tojson",
     tojson,
     0,
     {{"ensure_ascii"}, {"indent", kAnyOrNone}, {"separators", kAnyOrNone}, {"sort_keys"}}},
    {"urlencode", urlencode},
};

}  // namespace

const FunctionRow* find_filter(std::string_view name) {
  for (const FunctionRows rows : {text_filters(), list_filters(), FunctionRows(kValueFilters)})
    if (const FunctionRow* row = find_row(rows, name)) return row;
  return nullptr;
}

}  // namespace greta::jinja
