// Strings with values put in: "%s" % x, and "{}".format(x).
#include <cfloat>
#include <charconv>
#include <cmath>

#include "text/jinja/library/library.h"
#include "text/jinja/print.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {
namespace {

// How one value is to be written; what both kinds of format have.
struct Spec {
  std::string fill = " ";
  char align = 0;  // < > = ^, 0: the type's own
  char sign = '-';
  bool alternate = false;
  char grouping = 0;  // ',' or '_'
  int64_t width = 0, precision = -1;
  char type = 0;
};

constexpr int64_t kMaxPrecision = 1000;

int base_of(char type) {
  const char lower = char(type | 32);
  return lower == 'x' ? 16 : lower == 'o' ? 8 : lower == 'b' ? 2 : 10;
}

std::string integer_digits(int64_t signed_number, char type) {
  const uint64_t number = signed_number < 0 ? 0 - uint64_t(signed_number) : uint64_t(signed_number);
  char buffer[72];
  const auto done = std::to_chars(buffer, buffer + sizeof buffer, number, base_of(type));
  std::string digits(buffer, done.ptr);
  if (type == 'X')
    for (char& c : digits) c = c >= 'a' && c <= 'z' ? char(c - 32) : c;
  return digits;
}

// A whole number of %g as Python has it: with ".0" where the precision has room, else with an exponent.
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

// The digits of a float without its sign. With type 0 as repr(), or %g that keeps a ".0".
std::string float_digits(double number, const Spec& spec) {
  const char lower = char(spec.type | 32);
  const bool upper = spec.type >= 'A' && spec.type <= 'Z';
  if (!std::isfinite(number))
    return upper ? (std::isnan(number) ? "NAN" : "INF") : std::isnan(number) ? "nan" : "inf";
  if (!spec.type && spec.precision < 0) return float_text(number);
  const int64_t wanted = spec.precision < 0 ? 6 : spec.precision;
  std::string conversion = spec.alternate ? "%#.*" : "%.*";
  conversion += spec.type == '%' ? 'f' : !spec.type || lower == 'n' ? 'g' : spec.type;
  char buffer[DBL_MAX_10_EXP + kMaxPrecision + 16];
  format_text(buffer, sizeof buffer, conversion.c_str(), int(wanted), number);
  std::string digits = buffer;
  if (!spec.type && digits.find_first_of(".e") == digits.npos) add_point(size_t(wanted), &digits);
  if (spec.type == '%') digits += '%';
  return digits;
}

// Commas or underscores between groups of the digits before the point.
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

bool read_digits(std::string_view text, size_t* at, int64_t* out) {
  const size_t start = *at;
  for (*out = 0; *at < text.size() && text[*at] >= '0' && text[*at] <= '9'; ++*at)
    *out = std::min<int64_t>(*out * 10 + (text[*at] - '0'), int64_t(1) << 40);
  return *at > start;
}

// ---- % ----------------------------------------------------------------------------------------

struct PercentFormat {
  Run& run;
  std::string_view form;
  const Value& values;
  bool markup;
  size_t at = 0, used = 0;
  bool by_name = false;

  Status next_value(Value* out) {
    if (values.kind() == Kind::Tuple) {
      if (used >= values.size()) return fail(Code::Argument, "not enough arguments for format string");
      *out = values.items()[used++];
      return {};
    }
    if (used++) return fail(Code::Argument, "not enough arguments for format string");
    *out = values;
    return {};
  }
  Status star(int64_t* out) {
    Value value;
    GRETA_TRY(next_value(&value));
    return want_int("* in a format", value, out);
  }
  Status directive(std::string* out);
  Status write(const Value& value, Spec spec, std::string* out);
};

Status PercentFormat::directive(std::string* out) {
  if (form.substr(at, 1) == "%") return *out += form[at++], Status{};
  Spec spec;
  Value value;
  bool named = false;
  if (form.substr(at, 1) == "(") {
    const size_t start = ++at;
    for (int open = 1; at < form.size(); ++at) {
      open += form[at] == '(' ? 1 : form[at] == ')' ? -1 : 0;
      if (!open) break;
    }
    if (at == form.size()) return fail(Code::Argument, "incomplete format key");
    if (!values.is_dict()) return fail(Code::Argument, "format requires a mapping");
    const std::string_view key = form.substr(start, at - start);
    const Value* found = values.find(key);
    if (!found) return fail(Code::Argument, "the key %s of a format is missing", Quoted(key).c_str());
    value = *found;
    named = by_name = true;
    ++at;
  }
  bool left = false, zero = false;
  for (; at < form.size() && std::string_view("#0- +").find(form[at]) != std::string_view::npos; ++at) {
    left |= form[at] == '-';
    zero |= form[at] == '0';
    spec.alternate |= form[at] == '#';
    if (form[at] == '+' || (form[at] == ' ' && spec.sign != '+')) spec.sign = form[at];
  }
  if (form.substr(at, 1) == "*") {
    ++at;
    GRETA_TRY(star(&spec.width));
    left |= spec.width < 0;
    spec.width = spec.width < 0 ? (spec.width == INT64_MIN ? INT64_MAX : -spec.width) : spec.width;
  } else {
    read_digits(form, &at, &spec.width);
  }
  if (form.substr(at, 1) == ".") {
    ++at;
    if (form.substr(at, 1) == "*") {
      ++at;
      GRETA_TRY(star(&spec.precision));
      spec.precision = std::max<int64_t>(spec.precision, 0);
    } else {
      read_digits(form, &at, &spec.precision);
    }
  }
  while (at < form.size() && std::string_view("hlL").find(form[at]) != std::string_view::npos) ++at;
  if (at == form.size()) return fail(Code::Argument, "incomplete format");
  spec.type = form[at++];
  if (left)
    spec.align = '<';
  else if (zero && std::string_view("diouxXeEfFgG").find(spec.type) != std::string_view::npos)
    spec.align = '=', spec.fill = "0";
  if (!named) GRETA_TRY(next_value(&value));
  return write(value, spec, out);
}

Status PercentFormat::write(const Value& value, Spec spec, std::string* out) {
  const bool number = value.is_number() || value.is_bool();
  switch (spec.type) {
    case 's':
    case 'r':
    case 'a': {
      std::string text;
      GRETA_TRY(spec.type == 's' ? append_str(value, run.budget.limit, &text)
                                 : append_repr(value, run.budget.limit, &text));
      if (spec.type == 'a') text = ascii_only(text);
      if (markup && !value.is_markup()) text = escape_html(text);
      return place_text(run, text, spec, '>', out);
    }
    case 'c': {
      std::string text(value.as_string());
      if (value.is_int() && value.as_int() >= 0 && value.as_int() < 0x110000)
        append_utf8(uint32_t(value.as_int()), &text);
      if (code_points(text) != 1) return fail(Code::Argument, "%%c requires int or char");
      spec.precision = -1;
      return place_text(run, text, spec, '>', out);
    }
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X': {
      if (value.is_undefined()) return undefined_error(value);
      const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
      if (!number || (value.is_float() && !decimal))
        return fail(Code::Argument, "%%%c format: an integer is required, not %s", spec.type,
                    value.type_name());
      const double real = value.as_double();
      if (value.is_float() && !(real >= -0x1p63 && real < 0x1p63))
        return fail(Code::Argument, "an integer does not fit 64 bits");
      const int64_t whole = value.is_float()  ? int64_t(real)
                            : value.is_bool() ? value.as_bool()
                                              : value.as_int();
      if (spec.precision > 0) {  // that many digits at least
        std::string text = integer_digits(whole, spec.type);
        GRETA_TRY(run.room(uint64_t(spec.precision)));
        if (int64_t(text.size()) < spec.precision) text.insert(0, size_t(spec.precision) - text.size(), '0');
        std::string sign = sign_of(whole < 0, spec.sign);
        if (spec.alternate && !decimal) (sign += '0') += spec.type;
        return place(run, sign, text, spec, '>', out);
      }
      if (decimal) spec.type = 'd';
      return place_integer(run, whole, spec, out);
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      if (value.is_undefined()) return undefined_error(value);
      if (!number) return fail(Code::Argument, "must be real number, not %s", value.type_name());
      if (!std::isfinite(value.as_double()) && spec.fill == "0") spec.fill = " ", spec.align = '>';
      return place_float(run, value.is_bool() ? value.as_bool() : value.as_double(), spec, out);
    default:
      return fail(Code::Argument, "unsupported format character '%c'", spec.type);
  }
}

}  // namespace

Status format_percent(Run& run, const Value& form, const Value& values, Value* out) {
  PercentFormat format{run, form.as_string(), values, form.is_markup()};
  std::string made;
  while (format.at < format.form.size()) {
    const size_t mark = std::min(format.form.find('%', format.at), format.form.size());
    made.append(format.form, format.at, mark - format.at);
    format.at = mark;
    if (mark == format.form.size()) break;
    ++format.at;
    GRETA_TRY(run.step());
    GRETA_TRY(format.directive(&made));
    if (made.size() > run.budget.limit) return run.room(UINT64_MAX);
  }
  const size_t given = values.kind() == Kind::Tuple ? values.size() : 1;
  const bool loose = values.is_dict() || values.is_undefined() || sequence_of(values);
  if (!format.by_name && format.used < given && !(loose && values.kind() != Kind::Tuple))
    return fail(Code::Argument, "not all arguments converted during string formatting");
  GRETA_TRY(run.room(made.size()));
  *out = run.text(std::move(made), form.is_markup());
  return {};
}

// ---- str.format -------------------------------------------------------------------------------

namespace {

struct BraceFormat {
  Run& run;
  const Arguments& arguments;
  bool markup;
  int64_t next = 0;  // for {}; -1 once numbers were given

  Status expand(std::string_view form, uint32_t depth, std::string* out);
  Status field(std::string_view field, uint32_t depth, std::string* out);
  Status find(std::string_view path, Value* out);
  Status write(const Value& value, std::string_view spec, std::string* out);
};

Status BraceFormat::expand(std::string_view form, uint32_t depth, std::string* out) {
  if (depth > 2) return fail(Code::Argument, "Max string recursion exceeded");
  for (size_t at = 0; at < form.size(); ++at) {
    const char c = form[at];
    if ((c == '{' || c == '}') && form.substr(at + 1, 1) == form.substr(at, 1)) {
      *out += c;
      ++at;
    } else if (c == '}') {
      return fail(Code::Argument, "Single '}' encountered in format string");
    } else if (c == '{') {
      size_t end = at + 1;
      for (int open = 1; end < form.size(); ++end) {
        open += form[end] == '{' ? 1 : form[end] == '}' ? -1 : 0;
        if (!open) break;
      }
      if (end == form.size()) return fail(Code::Argument, "expected '}' before end of string");
      GRETA_TRY(run.step());
      GRETA_TRY(field(form.substr(at + 1, end - at - 1), depth, out));
      if (out->size() > run.budget.limit) return run.room(UINT64_MAX);
      at = end;
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
  char conversion = 0;
  if (field.substr(end, 1) == "!") {
    conversion = end + 1 < field.size() ? field[end + 1] : 0;
    end += 2;
    if (std::string_view("rsa").find(conversion) == std::string_view::npos || !conversion)
      return fail(Code::Argument, "a conversion of a format is r, s or a");
    if (end < field.size() && field[end] != ':')
      return fail(Code::Argument, "expected ':' after conversion specifier");
  }
  if (conversion) {
    std::string text;
    GRETA_TRY(conversion == 's' ? append_str(value, run.budget.limit, &text)
                                : append_repr(value, run.budget.limit, &text));
    value = run.text(conversion == 'a' ? ascii_only(text) : std::move(text));
  }
  std::string spec;
  if (end < field.size()) GRETA_TRY(expand(field.substr(end + 1), depth + 1, &spec));
  return write(value, spec, out);
}

// name or number, then .attributes and [items].
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
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '=' || c == '^'; };
  size_t at = 0;
  if (!text.empty()) {
    const uint32_t first = decode_utf8(text, 0).bytes;
    if (first < text.size() && is_align(text[first])) {
      spec->fill = text.substr(0, first);
      spec->align = text[first];
      at = first + 1;
    } else if (is_align(text[0])) {
      spec->align = text[at++];
    }
  }
  const auto take = [&](std::string_view any) {
    return at < text.size() && any.find(text[at]) != any.npos ? text[at++] : char(0);
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
  const std::string_view integer_types = "bcdoxXn", float_types = "eEfFgGn%";
  const auto one_of = [&](std::string_view types) {
    return !spec.type || types.find(spec.type) != types.npos;
  };
  const auto unknown = [&] {
    return fail(Code::Argument, "Unknown format code '%c' for object of type '%s'", spec.type,
                value.type_name());
  };
  if (value.is_int() || (value.is_bool() && !text.empty())) {
    const int64_t number = value.is_bool() ? value.as_bool() : value.as_int();
    if (one_of(integer_types)) {
      if (spec.precision >= 0)
        return fail(Code::Argument, "Precision not allowed in integer format specifier");
      if (spec.type != 'c') return place_integer(run, number, spec, out);
      if (number < 0 || number > kLastCode) return fail(Code::Argument, "%%c takes a code of Unicode");
      std::string one;
      append_utf8(uint32_t(number), &one);
      return place_text(run, one, spec, '<', out);
    }
    return one_of(float_types) ? place_float(run, double(number), spec, out) : unknown();
  }
  if (value.is_float())
    return one_of(float_types) ? place_float(run, value.as_double(), spec, out) : unknown();
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

Status format_method(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  BraceFormat format{run, arguments, self.is_markup()};
  std::string made;
  GRETA_TRY(run.room(self.as_string().size()));
  GRETA_TRY(format.expand(self.as_string(), 0, &made));
  GRETA_TRY(run.room(made.size()));
  *out = run.text(std::move(made), self.is_markup());
  return {};
}

constexpr FunctionRow kFormatMethods[] = {{"format", format_method}};

}  // namespace

FunctionRows format_methods() { return kFormatMethods; }

}  // namespace greta::jinja
