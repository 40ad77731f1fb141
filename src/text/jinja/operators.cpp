// Operators as Python has them: arithmetic, comparison, membership and slices.
#include <algorithm>
#include <cmath>

#include "text/jinja/library/library.h"
#include "text/jinja/print.h"
#include "text/jinja/run.h"

namespace greta::jinja {

// ---- iteration --------------------------------------------------------------------------------

Status start(const Value& value, Cursor* out) {
  *out = {value, 0};
  if (sequence_of(value) || value.is_dict() || value.is_string() || value.is_undefined()) return {};
  return fail(Code::Argument, "'%s' object is not iterable", value.type_name());
}

Status collect(Run& run, const Value& value, std::vector<Value>* out) {
  Cursor cursor;
  GRETA_TRY(start(value, &cursor));
  const int64_t left = cursor.left();
  if (left > 0) GRETA_TRY(run.room(uint64_t(left) * sizeof(Value)));
  for (Value item; cursor.next(&run.budget, &item); out->push_back(std::move(item))) GRETA_TRY(run.step());
  return {};
}

Status length_of(const Value& value, int64_t* out) {
  Cursor cursor;
  const Status status = start(value, &cursor);
  *out = status.ok() ? cursor.left() : -1;
  if (*out < 0) return fail(Code::Argument, "object of type '%s' has no len()", value.type_name());
  return {};
}

Status to_text(Run& run, const Value& value, std::string* out) {
  const size_t before = out->size();
  GRETA_TRY(append_str(value, run.budget.limit, out));
  return run.room(out->size() - before);
}

// ---- arithmetic -------------------------------------------------------------------------------

namespace {

Status power(int64_t base, int64_t exponent, Value* out) {
  int64_t result = 1;
  if (base == 1 || base == 0 || base == -1) {
    *out = exponent == 0 ? int64_t(1) : base == -1 ? (exponent % 2 ? int64_t(-1) : int64_t(1)) : base;
    return {};
  }
  for (int64_t i = 0; i < exponent; ++i)  // at most 63 times: the base is 2 or more
    if (__builtin_mul_overflow(result, base, &result)) return beyond_64_bits();
  *out = result;
  return {};
}

// op: one of + - * / % d (for //) p (for **).
Status integers(char op, int64_t a, int64_t b, Value* out) {
  int64_t result = 0;
  bool beyond = false;
  if (b == 0 && (op == '/' || op == 'd' || op == '%')) return fail(Code::Argument, "division by zero");
  if (op == '+') beyond = __builtin_add_overflow(a, b, &result);
  if (op == '-') beyond = __builtin_sub_overflow(a, b, &result);
  if (op == '*') beyond = __builtin_mul_overflow(a, b, &result);
  if (op == '/') return *out = double(a) / double(b), Status{};
  if (op == 'd' || op == '%') {
    // Python rounds quotients down, so that the rest has the divisor's sign.
    if (b == -1) {
      beyond = op == 'd' && a == INT64_MIN;
      result = op == 'd' && !beyond ? -a : 0;
    } else {
      const bool down = a % b != 0 && (a < 0) != (b < 0);
      result = op == 'd' ? a / b - down : a % b + (down ? b : 0);
    }
  }
  if (op == 'p') {
    if (b >= 0) return power(a, b, out);
    if (a == 0) return fail(Code::Argument, "division by zero");
    return *out = std::pow(double(a), double(b)), Status{};
  }
  return beyond ? beyond_64_bits() : (*out = result, Status{});
}

// The quotient of Python's //, or the rest of its %.
double floor_divide(double a, double b, bool wants_rest) {
  double rest = std::fmod(a, b), quotient = (a - rest) / b;
  if (rest == 0) {
    rest = std::copysign(0.0, b);
  } else if ((rest < 0) != (b < 0)) {
    rest += b;
    quotient -= 1;
  }
  if (wants_rest) return rest;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

Status floats(char op, double a, double b, Value* out) {
  const bool floors = op == 'd' || op == '%';
  if ((floors || op == '/') && b == 0) return fail(Code::Argument, "float division by zero");
  if (op != 'p') {
    *out = op == '+'   ? a + b
           : op == '-' ? a - b
           : op == '*' ? a * b
           : op == '/' ? a / b
                       : floor_divide(a, b, op == '%');
    return {};
  }
  if (a == 0 && b < 0) return fail(Code::Argument, "0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(b) && b != std::floor(b))
    return fail(Code::Unsupported, "complex numbers are not supported");
  const double result = std::pow(a, b);
  if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
    return fail(Code::Argument, "a power beyond all floats");
  *out = result;
  return {};
}

Status repeat(Run& run, const Value& object, int64_t count, Value* out) {
  const uint64_t times = count < 0 ? 0 : uint64_t(count);
  uint64_t bytes;
  if (object.is_string()) {
    const std::string_view text = object.as_string();
    if (!checked_multiply(text.size(), times, &bytes)) bytes = UINT64_MAX;
    GRETA_TRY(run.room(bytes));
    std::string made;
    if (!text.empty()) {
      made.reserve(bytes);
      for (uint64_t i = 0; i < times; ++i) made += text;
    }
    *out = run.text(std::move(made), object.is_markup());
    return {};
  }
  const auto items = object.items();
  if (!checked_multiply(items.size() * sizeof(Value), times, &bytes)) bytes = UINT64_MAX;
  GRETA_TRY(run.room(bytes));
  GRETA_TRY(run.step(bytes / sizeof(Value)));
  std::vector<Value> made;
  if (!items.empty()) {
    made.reserve(items.size() * times);
    for (uint64_t i = 0; i < times; ++i) made.insert(made.end(), items.begin(), items.end());
  }
  *out = run.sequence(std::move(made), object.is_list() ? Flavor::List : Flavor::Tuple);
  return {};
}

}  // namespace

Status add(Run& run, const Value& a, const Value& b, Value* out) {
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  if (a.is_string() && b.is_string()) {
    const bool markup = a.is_markup() || b.is_markup();  // then the other side is escaped
    const auto part = [&](const Value& v) {
      return markup && !v.is_markup() ? escape_html(v.as_string()) : std::string(v.as_string());
    };
    GRETA_TRY(run.room(a.as_string().size() + b.as_string().size()));
    std::string text = part(a);
    text += part(b);
    *out = run.text(std::move(text), markup);
    return {};
  }
  if ((a.is_list() && b.is_list()) || (a.kind() == Kind::Tuple && b.kind() == Kind::Tuple)) {
    const auto x = a.items(), y = b.items();
    GRETA_TRY(run.room((x.size() + y.size()) * sizeof(Value)));
    std::vector<Value> items;
    items.reserve(x.size() + y.size());
    items.insert(items.end(), x.begin(), x.end());
    items.insert(items.end(), y.begin(), y.end());
    *out = run.sequence(std::move(items), a.is_list() ? Flavor::List : Flavor::Tuple);
    return {};
  }
  if (is_numeric(a) && is_numeric(b))
    return a.is_float() || b.is_float() ? floats('+', real_of(a), real_of(b), out)
                                        : integers('+', whole_of(a), whole_of(b), out);
  if (a.is_string())
    return fail(Code::Argument, "can only concatenate str (not \"%s\") to str", b.type_name());
  return fail(Code::Argument, "unsupported operand types for +: '%s' and '%s'", a.type_name(), b.type_name());
}

Status operate(Run& run, const std::string& op, const Value& a, const Value& b, Value* out) {
  const char code = op == "//" ? 'd' : op == "**" ? 'p' : op[0];
  if (code == '+') return add(run, a, b, out);
  if (code == '%' && a.is_string()) return format_percent(run, a, b, out);
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  if (is_numeric(a) && is_numeric(b)) {
    if (a.is_float() || b.is_float()) return floats(code, real_of(a), real_of(b), out);
    return integers(code, whole_of(a), whole_of(b), out);
  }
  const auto repeats = [](const Value& v) { return v.is_string() || v.is_list() || v.kind() == Kind::Tuple; };
  if (code == '*' && repeats(a) && (b.is_int() || b.is_bool())) return repeat(run, a, whole_of(b), out);
  if (code == '*' && repeats(b) && (a.is_int() || a.is_bool())) return repeat(run, b, whole_of(a), out);
  return fail(Code::Argument, "unsupported operand types for %s: '%s' and '%s'", op.c_str(), a.type_name(),
              b.type_name());
}

// ---- comparison -------------------------------------------------------------------------------

namespace {

// Compares numbers of mixed types by their exact values: -1, 0 or 1, and 2 if one is NaN.
int order(const Value& a, const Value& b) {
  if (!a.is_float() && !b.is_float()) return whole_of(a) < whole_of(b) ? -1 : whole_of(a) > whole_of(b);
  if (a.is_float() && b.is_float()) {
    const double x = a.as_double(), y = b.as_double();
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
  }
  if (a.is_float()) {
    const int reverse = order(b, a);
    return reverse == 2 ? 2 : -reverse;
  }
  const double y = b.as_double();
  if (std::isnan(y)) return 2;
  if (y >= 0x1p63) return -1;
  if (y < -0x1p63) return 1;
  const int64_t x = whole_of(a), floor = int64_t(std::floor(y));
  return x < floor ? -1 : x > floor ? 1 : double(floor) < y ? -1 : 0;
}

Status too_deep() { return fail(Code::Full, "values of more than %u levels are compared", kMaxNesting); }

Status equal_items(Run& run, std::span<const Value> x, std::span<const Value> y, bool* out, uint32_t depth) {
  *out = x.size() == y.size();
  for (size_t i = 0; *out && i < x.size(); ++i) GRETA_TRY(equal(run, x[i], y[i], out, depth + 1));
  return {};
}

}  // namespace

Status equal(Run& run, const Value& a, const Value& b, bool* out, uint32_t depth) {
  if (depth > kMaxNesting) return too_deep();
  GRETA_TRY(run.step());
  *out = false;
  if (is_numeric(a) && is_numeric(b)) return *out = order(a, b) == 0, Status{};
  if (a.kind() != b.kind()) return {};
  if (a.is_undefined() || a.is_none()) return *out = true, Status{};
  if (a.is_string()) {
    *out = a.as_string() == b.as_string();
    return run.step(*out ? a.as_string().size() / 64 : 0);
  }
  const Sequence *x = sequence_of(a), *y = sequence_of(b);
  const bool ranges = x && x->flavor == Flavor::Range && y->flavor == Flavor::Range;
  if (x && (a.kind() != Kind::Iterable || ranges)) return equal_items(run, x->items, y->items, out, depth);
  if (!a.is_dict()) return *out = a.object() == b.object(), Status{};
  *out = a.size() == b.size();
  for (const Value::Entry& entry : a.entries()) {
    if (!*out) return {};
    const Value* other = dict_of(b)->find(entry.key);
    *out = other != nullptr;
    if (other) GRETA_TRY(equal(run, entry.value, *other, out, depth + 1));
  }
  return {};
}

Status less(Run& run, const Value& a, const Value& b, bool* out, uint32_t depth) {
  if (depth > kMaxNesting) return too_deep();
  GRETA_TRY(run.step());
  if (a.is_undefined()) return undefined_error(a);
  if (b.is_undefined()) return undefined_error(b);
  if (is_numeric(a) && is_numeric(b)) return *out = order(a, b) == -1, Status{};
  if (a.is_string() && b.is_string()) {
    *out = a.as_string() < b.as_string();  // bytes of UTF-8 are ordered as code points are
    return run.step(std::min(a.as_string().size(), b.as_string().size()) / 64);
  }
  if (a.kind() == b.kind() && (a.is_list() || a.kind() == Kind::Tuple)) {
    const auto x = a.items(), y = b.items();
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      bool same;
      GRETA_TRY(equal(run, x[i], y[i], &same, depth + 1));
      if (!same) return less(run, x[i], y[i], out, depth + 1);
    }
    *out = x.size() < y.size();
    return {};
  }
  return fail(Code::Argument, "'%s' and '%s' cannot be ordered", a.type_name(), b.type_name());
}

Status find_key(Run& run, const Dict& dict, const Value& key, const Value** out) {
  *out = nullptr;
  GRETA_TRY(run.step(key.as_string().size() / 16));
  if (is_hashable(key)) return *out = dict.find(key), Status{};
  if (key.is_undefined() || key.kind() == Kind::Object || key.kind() == Kind::Iterable) return {};
  return fail(Code::Argument, "%s cannot be a key of a dict", key.type_name());
}

Status contains(Run& run, const Value& container, const Value& item, bool* out) {
  *out = false;
  if (container.is_string()) {
    std::string_view part;
    GRETA_TRY(want_text("what is looked for in a string", item, &part));
    const std::string_view text = container.as_string();
    GRETA_TRY(run.step(text.size() / 8));
    *out = find_bytes(text, part, 0) != text.npos;
    return {};
  }
  if (container.is_dict()) {
    const Value* found;
    GRETA_TRY(find_key(run, *dict_of(container), item, &found));
    *out = found != nullptr;
    return {};
  }
  Cursor cursor;
  const Status status = start(container, &cursor);
  if (!status.ok())
    return fail(Code::Argument, "argument of type '%s' is not iterable", container.type_name());
  for (Value each; !*out && cursor.next(&run.budget, &each);) GRETA_TRY(equal(run, each, item, out));
  return {};
}

Status holds(Run& run, Comparison how, const Value& a, const Value& b, bool* out) {
  const bool negated = how == Comparison::NotEqual || how == Comparison::NotIn;
  const bool swapped = how == Comparison::Greater || how == Comparison::GreaterEqual;
  const Value &left = swapped ? b : a, &right = swapped ? a : b;
  bool yes = false;
  if (how == Comparison::In || how == Comparison::NotIn) {
    GRETA_TRY(contains(run, b, a, &yes));
  } else if (how == Comparison::Equal || how == Comparison::NotEqual) {
    GRETA_TRY(equal(run, a, b, &yes));
  } else {
    GRETA_TRY(less(run, left, right, &yes));
    const bool or_equal = how == Comparison::LessEqual || how == Comparison::GreaterEqual;
    if (or_equal && !yes) GRETA_TRY(equal(run, left, right, &yes));
  }
  *out = yes != negated;
  return {};
}

// ---- slices -----------------------------------------------------------------------------------

namespace {

struct Range {
  int64_t start, stop, step, count;
};

// Does what Python's slice.indices(length) does.
Status indices(const Value parts[3], int64_t length, Range* out) {
  out->step = 1;
  if (!parts[2].is_none()) GRETA_TRY(want_int("the step of a slice", parts[2], &out->step));
  if (out->step == 0) return fail(Code::Argument, "the step of a slice is zero");
  const bool back = out->step < 0;
  const int64_t low = back ? -1 : 0, high = back ? length - 1 : length;
  const auto bound = [&](const Value& part, int64_t fallback, int64_t* to) -> Status {
    *to = fallback;
    if (part.is_none()) return {};
    GRETA_TRY(want_int("a bound of a slice", part, to));
    if (*to < 0) *to = std::max(*to + length, low);
    *to = std::min(*to, high);
    return {};
  };
  GRETA_TRY(bound(parts[0], back ? high : low, &out->start));
  GRETA_TRY(bound(parts[1], back ? low : high, &out->stop));
  const int64_t distance = back ? out->start - out->stop : out->stop - out->start;
  const uint64_t stride = back ? 0 - uint64_t(out->step) : uint64_t(out->step);
  out->count = distance > 0 ? int64_t((uint64_t(distance) - 1) / stride) + 1 : 0;
  return {};
}

}  // namespace

Status slice(Run& run, const Value& object, const Value parts[3], Value* out) {
  if (object.is_undefined()) return undefined_error(object);
  Range range;
  const Sequence* sequence = sequence_of(object);
  if (sequence && (object.kind() != Kind::Iterable || sequence->flavor == Flavor::Range)) {
    GRETA_TRY(indices(parts, int64_t(sequence->items.size()), &range));
    GRETA_TRY(run.room(uint64_t(range.count) * sizeof(Value)));
    std::vector<Value> items;
    items.reserve(size_t(range.count));
    for (int64_t i = 0; i < range.count; ++i)
      items.push_back(sequence->items[size_t(range.start + i * range.step)]);
    const bool group = sequence->flavor == Flavor::Group;
    const Value made = run.sequence(std::move(items), group ? Flavor::Tuple : sequence->flavor);
    if (sequence->flavor == Flavor::Range) {
      const auto& [start, stop, step] = sequence->range;
      sequence_of(made)->range = {start + range.start * step, start + range.stop * step, step * range.step};
    }
    *out = made;
    return {};
  }
  if (!object.is_string()) return fail(Code::Argument, "'%s' object cannot be sliced", object.type_name());
  const std::string_view text = object.as_string();
  GRETA_TRY(run.room(text.size()));
  GRETA_TRY(indices(parts, int64_t(code_points(text)), &range));
  std::string made;
  if (range.step == 1) {
    const size_t from = byte_of(text, uint64_t(std::max<int64_t>(range.start, 0)));
    if (range.count > 0) made = text.substr(from, byte_of(text.substr(from), uint64_t(range.count)));
  } else if (range.count > 0) {
    GRETA_TRY(run.room((text.size() + 1) * sizeof(size_t)));
    std::vector<size_t> starts;
    for (size_t at = 0; at < text.size(); ++at)
      if ((text[at] & 0xC0) != 0x80) starts.push_back(at);
    starts.push_back(text.size());
    for (int64_t i = 0; i < range.count; ++i) {
      const size_t at = size_t(range.start + i * range.step);
      made += text.substr(starts[at], starts[at + 1] - starts[at]);
    }
  }
  *out = run.text(std::move(made), object.is_markup());
  return {};
}

}  // namespace greta::jinja
