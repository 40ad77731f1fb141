// Formats values into strings: "%s" % x, and "{}".format(x).
#include <cfloat>
#include <charconv>
#include <cmath>

#include "text/jinja/library/library.h"
#include "text/jinja/print.h"

namespace greta::jinja {
namespace {

// How a value is written, in formats of both kinds.
struct Spec {
  std::string fill = " ";
  char align = 0;  // < > = ^, or 0 for the type's own
  char sign = '-';
  bool alternate = false;
  char grouping = 0;  // ',' or '_'
  int64_t width = 0, precision = -1;
  char type = 0;
};

constexpr int64_t kMaxPrecision = 1000;

bool is_one_of(char c, std::string_view characters) { return characters.find(c) != characters.npos; }

int base_of(char type) {
  const char lower = char(type | 32);
  return lower == 'x' ? 16 : lower == 'o' ? 8 : lower == 'b' ? 2 : 10;
}

std::string integer_digits(int64_t number, char type) {
  char buffer[72];
  const auto done = std::to_chars(buffer, buffer + sizeof buffer,
                                  number < 0 ? 0 - uint64_t(number) : uint64_t(number), base_of(type));
  const std::string digits(buffer, done.ptr);
  return type == 'X' ? to_upper(digits) : digits;
}

// Python writes a whole number as %g with ".0" if the precision has room, else with an exponent.
void add_point(size_t precision, std::string* digits) {
  const size_t power = digits->size() - 1;
  if (power + 1 < precision) {
    *digits += ".0";
    return;
  }
  digits->resize(std::max<size_t>(digits->find_last_not_of('0') + 1, 1));
  if (digits->size() > 1) digits->insert(1, 1, '.');
  *digits += (power < 10 ? "e+0" : "e+") + std::to_string(power);
}

// The digits of a float without its sign. Without a type they are those of repr(), or of %g with ".0".
std::string float_digits(double number, const Spec& spec) {
  const bool upper = spec.type >= 'A' && spec.type <= 'Z';
  if (!std::isfinite(number))
    return upper ? (std::isnan(number) ? "NAN" : "INF") : std::isnan(number) ? "nan" : "inf";
  if (!spec.type && spec.precision < 0) return float_text(number);
  const int64_t wanted = spec.precision < 0 ? 6 : spec.precision;
  std::string conversion = spec.alternate ? "%#.*" : "%.*";
  conversion += spec.type == '%' ? 'f' : !spec.type || spec.type == 'n' ? 'g' : spec.type;
  char buffer[DBL_MAX_10_EXP + kMaxPrecision + 16];
  format_text(buffer, sizeof buffer, conversion.c_str(), int(wanted), number);
  std::string digits = buffer;
  if (!spec.type && digits.find_first_of(".e") == digits.npos) add_point(size_t(wanted), &digits);
  if (spec.type == '%') digits += '%';
  return digits;
}

// Puts a comma or an underscore between groups of the digits before the point.
void group(char separator, size_t size, std::string* digits) {
  size_t end = 0;
  while (end < digits->size() && is_ascii_alnum((*digits)[end])) ++end;
  for (size_t at = end; at > size; at -= size) digits->insert(at - size, 1, separator);
}

Status place(Run& run, std::string_view sign, std::string_view text, const Spec& spec, char own_align,
             std::string* out) {
  const int64_t length = int64_t(code_points(text) + sign.size());
  const uint64_t more = spec.width > length ? uint64_t(spec.width - length) : 0;
  GRETA_TRY(run.room(more * spec.fill.size() + text.size()));
  const char align = spec.align ? spec.align : own_align;
  const uint64_t left = align == '<' ? 0 : align == '^' ? more / 2 : more;
  const auto fill = [&](uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) *out += spec.fill;
  };
  if (align == '=') *out += sign;
  fill(left);
  if (align != '=') *out += sign;
  *out += text;
  fill(more - left);
  return {};
}

std::string sign_of(bool negative, char sign) {
  return negative ? "-" : sign == '-' ? "" : std::string(1, sign);
}

Status place_integer(Run& run, int64_t number, const Spec& spec, std::string* out) {
  const int base = base_of(spec.type);
  std::string digits = integer_digits(number, spec.type), sign = sign_of(number < 0, spec.sign);
  if (spec.grouping) group(spec.grouping, base == 10 ? 3 : 4, &digits);
  if (spec.precision > int64_t(digits.size())) {  // so many digits at least
    GRETA_TRY(run.room(uint64_t(spec.precision)));
    digits.insert(0, size_t(spec.precision) - digits.size(), '0');
  }
  if (spec.alternate && base != 10) (sign += '0') += spec.type;
  return place(run, sign, digits, spec, '>', out);
}

Status place_float(Run& run, double number, const Spec& spec, std::string* out) {
  if (spec.precision > kMaxPrecision)
    return fail(Code::Unsupported, "more than %lld digits of a number", (long long)kMaxPrecision);
  const bool negative = std::signbit(number) && !std::isnan(number);
  std::string digits = float_digits(std::fabs(spec.type == '%' ? number * 100 : number), spec);
  if (spec.grouping) group(spec.grouping, 3, &digits);
  return place(run, sign_of(negative, spec.sign), digits, spec, '>', out);
}

Status place_text(Run& run, std::string_view text, const Spec& spec, char own_align, std::string* out) {
  if (spec.precision >= 0) text = text.substr(0, byte_of(text, uint64_t(spec.precision)));
  return place(run, "", text, spec, own_align, out);
}

// A character by its code.
Status place_code(Run& run, int64_t code, const Spec& spec, char own_align, std::string* out) {
  if (code < 0 || code > kLastCode) return fail(Code::Argument, "%%c takes a code of Unicode");
  std::string one;
  append_utf8(uint32_t(code), &one);
  return place_text(run, one, spec, own_align, out);
}

// Writes a value by a conversion: 's' is str(), 'r' is repr(), and 'a' is repr() in ASCII.
Status convert(Run& run, char conversion, const Value& value, std::string* out) {
  if (conversion == 's') return append_str(value, run.budget.limit, out);
  if (conversion == 'r') return append_repr(value, run.budget.limit, out);
  std::string shown;
  GRETA_TRY(append_repr(value, run.budget.limit, &shown));
  for (const auto& [code, bytes, at] : CodePoints(shown))
    code < 0x80 ? out->push_back(char(code)) : append_escaped(code, out);
  return {};
}

// The place after the bracket that closes the one before `at`, or npos if there is none.
size_t after_bracket(std::string_view text, size_t at, char open, char close) {
  for (int depth = 1; at < text.size();) {
    const char c = text[at++];
    depth += c == open ? 1 : c == close ? -1 : 0;
    if (depth == 0) return at;
  }
  return text.npos;
}

bool read_digits(std::string_view text, size_t* at, int64_t* out) {
  const size_t start = *at;
  for (*out = 0; *at < text.size() && text[*at] >= '0' && text[*at] <= '9'; ++*at)
    *out = std::min<int64_t>(*out * 10 + (text[*at] - '0'), int64_t(1) << 40);
  return *at > start;
}

// ---- % ----------------------------------------------------------------------------------------

struct PercentFormat {
  Run& run;
  std::string_view format;
  const Value& values;
  bool markup;
  size_t at = 0, used = 0;
  bool by_name = false;

  Status next_value(Value* out) {
    const bool several = values.kind() == Kind::Tuple;
    if (used >= (several ? values.size() : 1))
      return fail(Code::Argument, "not enough arguments for format string");
    *out = several ? values.items()[used] : values;
    ++used;
    return {};
  }
  bool take(char c) { return at < format.size() && format[at] == c ? (++at, true) : false; }
  // Digits, or '*' for the next value.
  Status size(int64_t* out) {
    if (!take('*')) return read_digits(format, &at, out), Status{};
    Value value;
    GRETA_TRY(next_value(&value));
    return want_int("* in a format", value, out);
  }
  Status named_value(Value* out);
  Status directive(std::string* out);
  Status write(const Value& value, Spec spec, std::string* out);
};

// Reads the name after "%(".
Status PercentFormat::named_value(Value* out) {
  const size_t end = after_bracket(format, at, '(', ')');
  if (end == format.npos) return fail(Code::Argument, "incomplete format key");
  if (!values.is_dict()) return fail(Code::Argument, "format requires a mapping");
  const std::string_view key = format.substr(at, end - 1 - at);
  const Value* found = values.find(key);
  if (!found) return fail(Code::Argument, "the key %s of a format is missing", Quoted(key).c_str());
  *out = *found;
  at = end;
  by_name = true;
  return {};
}

// Reads a conversion after "%".
Status PercentFormat::directive(std::string* out) {
  if (take('%')) return *out += '%', Status{};
  Spec spec;
  Value value;
  const bool named = take('(');
  if (named) GRETA_TRY(named_value(&value));
  bool left = false, zero = false;
  for (; at < format.size() && is_one_of(format[at], "#0- +"); ++at) {
    const char flag = format[at];
    left |= flag == '-';
    zero |= flag == '0';
    spec.alternate |= flag == '#';
    if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
  }
  GRETA_TRY(size(&spec.width));
  left |= spec.width < 0;
  spec.width = std::abs(std::max(spec.width, -INT64_MAX));
  if (take('.')) {
    GRETA_TRY(size(&spec.precision));
    spec.precision = std::max<int64_t>(spec.precision, 0);
  }
  while (at < format.size() && is_one_of(format[at], "hlL")) ++at;
  if (at == format.size()) return fail(Code::Argument, "incomplete format");
  spec.type = format[at++];
  if (left)
    spec.align = '<';
  else if (zero && is_one_of(spec.type, "diouxXeEfFgG"))
    spec.align = '=', spec.fill = "0";
  if (!named) GRETA_TRY(next_value(&value));
  return write(value, spec, out);
}

Status PercentFormat::write(const Value& value, Spec spec, std::string* out) {
  if (is_one_of(spec.type, "sra")) {
    std::string text;
    GRETA_TRY(convert(run, spec.type, value, &text));
    if (markup && !value.is_markup()) text = escape_html(text);
    return place_text(run, text, spec, '>', out);
  }
  if (spec.type == 'c') {
    spec.precision = -1;
    if (value.is_int()) return place_code(run, value.as_int(), spec, '>', out);
    if (code_points(value.as_string()) != 1) return fail(Code::Argument, "%%c requires int or char");
    return place_text(run, value.as_string(), spec, '>', out);
  }
  const bool decimal = is_one_of(spec.type, "diu"), integer = decimal || is_one_of(spec.type, "oxX");
  if (!integer && !is_one_of(spec.type, "eEfFgG"))
    return fail(Code::Argument, "unsupported format character '%c'", spec.type);
  if (value.is_undefined()) return undefined_error(value);
  if (!is_numeric(value) || (value.is_float() && integer && !decimal))
    return fail(Code::Argument, "%%%c format: a number is required, not %s", spec.type, value.type_name());
  const double real = real_of(value);
  if (!integer) {
    if (!std::isfinite(real) && spec.fill == "0") spec.fill = " ", spec.align = '>';
    return place_float(run, real, spec, out);
  }
  if (value.is_float() && !(real >= -0x1p63 && real < 0x1p63)) return beyond_64_bits();
  if (decimal) spec.type = 'd';
  return place_integer(run, value.is_float() ? int64_t(real) : whole_of(value), spec, out);
}

}  // namespace

Status format_percent(Run& run, const Value& text, const Value& values, Value* out) {
  PercentFormat percent{run, text.as_string(), values, text.is_markup()};
  std::string made;
  for (;;) {
    const size_t mark = std::min(percent.format.find('%', percent.at), percent.format.size());
    made.append(percent.format, percent.at, mark - percent.at);
    if (mark == percent.format.size()) break;
    percent.at = mark + 1;
    GRETA_TRY(run.step());
    GRETA_TRY(percent.directive(&made));
    if (made.size() > run.budget.limit) return run.room(UINT64_MAX);
  }
  const bool tuple = values.kind() == Kind::Tuple;
  const bool all = tuple ? percent.used == values.size()
                         : percent.used || values.is_dict() || values.is_undefined() || sequence_of(values);
  if (!percent.by_name && !all)
    return fail(Code::Argument, "not all arguments converted during string formatting");
  GRETA_TRY(run.room(made.size()));
  *out = run.text(std::move(made), text.is_markup());
  return {};
}

// ---- str.format -------------------------------------------------------------------------------

namespace {

struct BraceFormat {
  Run& run;
  const Arguments& arguments;
  bool markup;
  int64_t next = 0;  // the argument of the next {}; -1 once fields have had numbers

  Status expand(std::string_view format, uint32_t depth, std::string* out);
  Status field(std::string_view field, uint32_t depth, std::string* out);
  Status find(std::string_view path, Value* out);
  Status write(const Value& value, std::string_view spec, std::string* out);
};

Status BraceFormat::expand(std::string_view format, uint32_t depth, std::string* out) {
  if (depth > 2) return fail(Code::Argument, "Max string recursion exceeded");
  for (size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    if ((c == '{' || c == '}') && format.substr(at + 1, 1) == format.substr(at, 1)) {
      *out += c;
      ++at;
    } else if (c == '}') {
      return fail(Code::Argument, "Single '}' encountered in format string");
    } else if (c == '{') {
      const size_t end = after_bracket(format, at + 1, '{', '}');
      if (end == format.npos) return fail(Code::Argument, "expected '}' before end of string");
      GRETA_TRY(run.step());
      GRETA_TRY(field(format.substr(at + 1, end - at - 2), depth, out));
      if (out->size() > run.budget.limit) return run.room(UINT64_MAX);
      at = end - 1;
    } else {
      *out += c;
    }
  }
  return {};
}

Status BraceFormat::field(std::string_view field, uint32_t depth, std::string* out) {
  size_t end = 0;
  for (bool in_index = false; end < field.size(); ++end) {
    if (field[end] == '[') in_index = true;
    if (field[end] == ']') in_index = false;
    if (!in_index && (field[end] == '!' || field[end] == ':')) break;
  }
  Value value;
  GRETA_TRY(find(field.substr(0, end), &value));
  if (field.substr(end, 1) == "!") {
    const char conversion = end + 1 < field.size() ? field[end + 1] : '?';
    end += 2;
    if (!is_one_of(conversion, "rsa")) return fail(Code::Argument, "a conversion of a format is r, s or a");
    if (end < field.size() && field[end] != ':')
      return fail(Code::Argument, "expected ':' after conversion specifier");
    std::string text;
    GRETA_TRY(convert(run, conversion, value, &text));
    value = run.text(std::move(text));
  }
  std::string spec;
  if (end < field.size()) GRETA_TRY(expand(field.substr(end + 1), depth + 1, &spec));
  return write(value, spec, out);
}

// Finds the value of a field: its name or number, then .attributes and [items].
Status BraceFormat::find(std::string_view path, Value* out) {
  size_t at = std::min(path.find_first_of(".["), path.size());
  const std::string_view first = path.substr(0, at);
  int64_t number = 0;
  size_t digits = 0;
  if (first.empty() || (read_digits(first, &digits, &number) && digits == first.size())) {
    if (first.empty() ? next < 0 : next > 0)
      return fail(Code::Argument, "cannot mix automatic and manual numbers of fields");
    if (first.empty())
      number = next++;
    else
      next = -1;
    if (number >= int64_t(arguments.places.size()))
      return fail(Code::Argument, "Replacement index %lld out of range for positional args tuple",
                  (long long)number);
    *out = arguments.places[size_t(number)];
  } else {
    const Value* found = nullptr;
    for (const auto& [name, value] : arguments.names)
      if (name == first) found = &value;
    if (!found) return fail(Code::Argument, "the name %s of a format is missing", Quoted(first).c_str());
    *out = *found;
  }
  while (at < path.size()) {
    Value part;
    if (path[at] == '.') {
      const size_t end = std::min(path.find_first_of(".[", at + 1), path.size());
      GRETA_TRY(run.attribute(*out, path.substr(at + 1, end - at - 1), &part));
      at = end;
    } else {
      const size_t end = path.find(']', at);
      if (path[at] != '[' || end == path.npos)
        return fail(Code::Argument, "a broken name of a field in a format");
      const std::string_view key = path.substr(at + 1, end - at - 1);
      size_t used = 0;
      const bool index = read_digits(key, &used, &number) && used == key.size();
      GRETA_TRY(run.item(*out, index ? Value(number) : run.text(key), &part));
      at = end + 1;
    }
    *out = std::move(part);
  }
  return {};
}

Status read_spec(std::string_view text, Spec* spec) {
  size_t at = 0;
  if (!text.empty()) {
    const uint32_t first = decode_utf8(text, 0).bytes;
    if (first < text.size() && is_one_of(text[first], "<>=^")) {
      spec->fill = text.substr(0, first);
      spec->align = text[first];
      at = first + 1;
    } else if (is_one_of(text[0], "<>=^")) {
      spec->align = text[at++];
    }
  }
  const auto take = [&](std::string_view any) {
    return at < text.size() && is_one_of(text[at], any) ? text[at++] : char(0);
  };
  if (const char sign = take("+- ")) spec->sign = sign;
  spec->alternate = take("#") != 0;
  if (take("0") && !spec->align) spec->fill = "0", spec->align = '=';
  read_digits(text, &at, &spec->width);
  spec->grouping = take(",_");
  if (take(".") && !read_digits(text, &at, &spec->precision))
    return fail(Code::Argument, "Format specifier missing precision");
  if (at < text.size()) spec->type = text[at++];
  return at == text.size() ? Status{} : fail(Code::Argument, "Invalid format specifier");
}

Status BraceFormat::write(const Value& value, std::string_view text, std::string* out) {
  Spec spec;
  GRETA_TRY(read_spec(text, &spec));
  const auto one_of = [&](std::string_view types) { return !spec.type || is_one_of(spec.type, types); };
  const auto unknown = [&] {
    return fail(Code::Argument, "Unknown format code '%c' for object of type '%s'", spec.type,
                value.type_name());
  };
  const bool integer = value.is_int() || (value.is_bool() && !text.empty());
  if (integer && one_of("bcdoxXn")) {
    if (spec.precision >= 0) return fail(Code::Argument, "Precision not allowed in integer format specifier");
    return spec.type == 'c' ? place_code(run, whole_of(value), spec, '<', out)
                            : place_integer(run, whole_of(value), spec, out);
  }
  if (integer || value.is_float())
    return one_of("eEfFgGn%") ? place_float(run, real_of(value), spec, out) : unknown();
  std::string shown;
  GRETA_TRY(append_str(value, run.budget.limit, &shown));
  if (!value.is_string() && !text.empty())
    return fail(Code::Argument, "unsupported format string passed to %s.__format__", value.type_name());
  if (!one_of("s")) return unknown();
  if ((spec.align == '=' && spec.fill != "0") || spec.sign != '-' || spec.grouping || spec.alternate)
    return fail(Code::Argument, "signs, groups, '#' and '=' are for numbers, not for a string");
  if (spec.align == '=') spec.align = '<';
  if (markup && !value.is_markup()) shown = escape_html(shown);
  return place_text(run, shown, spec, '<', out);
}

}  // namespace

Status format_method(Call& call) {
  const std::string_view text = call.self.as_string();
  BraceFormat format{call.run, call.arguments, call.self.is_markup()};
  std::string made;
  GRETA_TRY(call.run.room(text.size()));
  GRETA_TRY(format.expand(text, 0, &made));
  return call.give_text(std::move(made));
}

}  // namespace greta::jinja
