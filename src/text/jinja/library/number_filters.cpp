// Filters of numbers and of any value; and how filters are found.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "text/jinja/library/library.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {
namespace {

// ---- reading numbers out of texts, as Python's int() and float() ------------------------------

// Underscores may stand between digits, some of which may be letters.
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
  if (done.ec == std::errc::result_out_of_range) {  // too near to zero, or too far
    const size_t exponent = digits.find_first_of("eE");
    const bool tiny = exponent != digits.npos ? digits[exponent + 1] == '-'
                                              : digits.find_first_of("123456789") > digits.find('.');
    *out = tiny ? 0.0 : HUGE_VAL;
    if (digits[0] == '-') *out = -*out;
  }
  return true;
}

Status from_float(double number, const Value* fallback, Value* out) {
  if (std::isnan(number)) return *out = fallback ? *fallback : Value(0), Status{};
  if (!(number >= -0x1p63 && number < 0x1p63)) return fail(Code::Argument, "an integer does not fit 64 bits");
  *out = int64_t(number);
  return {};
}

Status int_filter(Run&, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind("int", arguments, {"default", "base"}, 0, slots));
  int64_t base = 10, number = 0;
  if (slots[1]) GRETA_TRY(want_int("the base", *slots[1], &base));
  if (subject.is_undefined()) return undefined_error(subject);
  if (subject.is_int()) return *out = subject, Status{};
  if (subject.is_bool()) return *out = int64_t(subject.as_bool()), Status{};
  if (subject.is_float()) return from_float(subject.as_double(), slots[0], out);
  if (subject.is_string()) {
    if (base != 0 && (base < 2 || base > 36)) return *out = slots[0] ? *slots[0] : Value(0), Status{};
    bool beyond = false;
    if (read_int(subject.as_string(), base, &number, &beyond)) {
      if (beyond) return fail(Code::Argument, "an integer does not fit 64 bits");
      return *out = number, Status{};
    }
    double real;
    if (read_float(subject.as_string(), &real)) return from_float(real, slots[0], out);
  }
  *out = slots[0] ? *slots[0] : Value(0);
  return {};
}

Status float_filter(Run&, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slot;
  GRETA_TRY(bind("float", arguments, {"default"}, 0, &slot));
  if (subject.is_undefined()) return undefined_error(subject);
  if (subject.is_number()) return *out = subject.as_double(), Status{};
  if (subject.is_bool()) return *out = subject.as_bool() ? 1.0 : 0.0, Status{};
  double number;
  if (subject.is_string() && read_float(subject.as_string(), &number)) return *out = number, Status{};
  *out = slot ? *slot : Value(0.0);
  return {};
}

Status abs_filter(Run&, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("abs", arguments, {}, 0, nullptr));
  if (subject.is_float()) return *out = std::fabs(subject.as_double()), Status{};
  int64_t number;
  GRETA_TRY(want_int("what abs is of", subject, &number));
  if (number == INT64_MIN) return fail(Code::Argument, "an integer does not fit 64 bits");
  *out = number < 0 ? -number : number;
  return {};
}

// To the nearest decimal, as the exact value of the float has it; halves to even.
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

Status round_integer(int64_t number, int64_t precision, Value* out) {
  if (precision >= 0) return *out = number, Status{};
  if (precision < -18) return *out = 0, Status{};
  int64_t scale = 1;
  for (int64_t i = 0; i < -precision; ++i) scale *= 10;
  int64_t quotient = number / scale, rest = number % scale;
  if (rest < 0) rest += scale, --quotient;
  if (rest > scale - rest || (rest == scale - rest && quotient % 2)) ++quotient;
  int64_t result;
  if (__builtin_mul_overflow(quotient, scale, &result))
    return fail(Code::Argument, "an integer does not fit 64 bits");
  *out = result;
  return {};
}

Status round_filter(Run&, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind("round", arguments, {"precision", "method"}, 0, slots));
  int64_t precision = 0;
  std::string_view method = "common";
  if (slots[0]) GRETA_TRY(want_int("the precision", *slots[0], &precision));
  if (slots[1]) GRETA_TRY(want_text("the method", *slots[1], &method));
  if (method != "common" && method != "ceil" && method != "floor")
    return fail(Code::Argument, "method must be common, ceil or floor");
  int64_t number = 0;
  if (!subject.is_float()) GRETA_TRY(want_int("what is rounded", subject, &number));
  if (method == "common") {
    if (!subject.is_float()) return round_integer(number, precision, out);
    *out = round_decimal(subject.as_double(), precision);
    return {};
  }
  const double value = subject.is_float() ? subject.as_double() : double(number);
  const double scale = std::pow(10.0, double(precision));
  const double scaled = value * scale;
  if (!std::isfinite(scaled)) return fail(Code::Argument, "a number beyond all integers cannot be rounded");
  *out = (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
  return {};
}

Status filesizeformat(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slot;
  GRETA_TRY(bind("filesizeformat", arguments, {"binary"}, 0, &slot));
  Value number;
  Arguments none;
  none.places.push_back(Value(nullptr));
  GRETA_TRY(float_filter(run, subject, none, &number));
  const double bytes = number.as_double(), base = slot && slot->is_true() ? 1024 : 1000;
  if (number.is_none() || !std::isfinite(bytes)) return fail(Code::Argument, "not a size of a file");
  char text[64];
  if (bytes == 1) return *out = run.text("1 Byte"), Status{};
  if (bytes < base) {
    format_text(text, sizeof text, "%.0f Bytes", std::trunc(bytes) + 0.0);  // -0 has no sign
    return *out = run.text(std::string_view(text)), Status{};
  }
  constexpr const char kUnits[] = "KMGTPEZY";
  double unit = base;
  size_t i = 0;
  while (i < 7 && bytes >= unit * base) unit *= base, ++i;
  const bool binary = base == 1024;
  if (bytes / unit > 1e30) return fail(Code::Argument, "not a size of a file");
  format_text(text, sizeof text, "%.1f %c%sB", base * bytes / (unit * base), i || binary ? kUnits[i] : 'k',
              binary ? "i" : "");
  *out = run.text(std::string_view(text));
  return {};
}

// ---- any value --------------------------------------------------------------------------------

Status default_filter(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind("default", arguments, {"default_value", "boolean"}, 0, slots));
  const bool boolean = slots[1] && slots[1]->is_true();
  if (!subject.is_undefined() && !(boolean && !subject.is_true())) return *out = subject, Status{};
  *out = slots[0] ? *slots[0] : run.text("");
  return {};
}

Status attr(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slot;
  std::string_view name;
  GRETA_TRY(bind("attr", arguments, {"name"}, 1, &slot));
  GRETA_TRY(want_text("the name of an attribute", *slot, &name));
  if (subject.is_undefined()) return undefined_error(subject);
  if (subject.is_dict() && subject.find(name)) {  // an item is no attribute, but a method of that name is
    const char* lasting;
    if (!find_method(subject, name, &lasting))
      return *out = run.undefined("'dict object' has no attribute '" + std::string(name) + "'"), Status{};
  }
  return run.attribute(subject, name, out);
}

constexpr FunctionRow kNumberFilters[] = {
    {"int", int_filter},
    {"float", float_filter},
    {"abs", abs_filter},
    {"round", round_filter},
    {"filesizeformat", filesizeformat},
    {"default", default_filter},
    {"d", default_filter},
    {"attr", attr},
};

}  // namespace

Function find_filter(std::string_view name) {
  for (const FunctionRows rows : {text_filters(), list_filters(), FunctionRows(kNumberFilters)})
    for (const FunctionRow& row : rows)
      if (name == row.name) return row.function;
  return nullptr;
}

}  // namespace greta::jinja
