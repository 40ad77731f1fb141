// Methods that look into strings, and those of lists, tuples, dicts and numbers; and how methods are found.
#include <algorithm>
#include <bit>
#include <cmath>

#include "text/jinja/library/library.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {
namespace {

// ---- strings ----------------------------------------------------------------------------------

// The part of a string between two code points, as Python's slices.
struct Window {
  std::string_view text;
  uint64_t start = 0;  // in code points
  bool valid = true;   // false where the start is beyond the end
};

Status window(const Value& self, const Value* from, const Value* to, Window* out) {
  const Text* object = text_of(self);
  const int64_t length = object ? int64_t(object->length()) : 0;
  const auto bound = [&](const Value* value, int64_t fallback, int64_t* at) -> Status {
    *at = fallback;
    if (!value || value->is_none()) return {};
    GRETA_TRY(want_int("a bound", *value, at));
    if (*at < 0) *at = std::max<int64_t>(*at + length, 0);
    return {};
  };
  int64_t first, last;
  GRETA_TRY(bound(from, 0, &first));
  GRETA_TRY(bound(to, length, &last));
  last = std::min(last, length);
  out->valid = first <= last;
  if (!out->valid) return {};
  const std::string_view text = self.as_string();
  const size_t start = byte_of(text, uint64_t(first));
  out->text = text.substr(start, byte_of(text.substr(start), uint64_t(last - first)));
  out->start = uint64_t(first);
  return {};
}

enum class Search { Find, Index, Rfind, Rindex, Count };

template <Search How>
Status search(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* slots[3];
  GRETA_TRY(bind("the method", arguments, {"the text", "the start", "the end"}, 1, slots));
  std::string_view part;
  GRETA_TRY(want_text("what is looked for", *slots[0], &part));
  GRETA_TRY(run.step(self.as_string().size() / 8));
  Window in;
  GRETA_TRY(window(self, slots[1], slots[2], &in));
  if (How == Search::Count) {
    int64_t count = 0;
    if (in.valid && part.empty()) count = int64_t(code_points(in.text)) + 1;
    for (size_t at = 0; in.valid && !part.empty();) {
      at = find_bytes(in.text, part, at);
      if (at == in.text.npos) break;
      GRETA_TRY(run.step());
      at += part.size();
      ++count;
    }
    *out = count;
    return {};
  }
  const bool last = How == Search::Rfind || How == Search::Rindex;
  const size_t at = !in.valid ? in.text.npos
                    : last    ? rfind_bytes(in.text, part)
                              : find_bytes(in.text, part, 0);
  if (at != in.text.npos) return *out = int64_t(in.start + code_points(in.text.substr(0, at))), Status{};
  if (How == Search::Index || How == Search::Rindex) return fail(Code::Argument, "substring not found");
  *out = -1;
  return {};
}

template <bool Front>
Status has_affix(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* slots[3];
  const char* const name = Front ? "startswith()" : "endswith()";
  GRETA_TRY(bind(name, arguments, {"the affix", "the start", "the end"}, 1, slots));
  Window in;
  if (slots[1] || slots[2]) GRETA_TRY(run.step(self.as_string().size() / 16));
  GRETA_TRY(window(self, slots[1], slots[2], &in));
  const auto has = [&](const Value& affix, bool* yes) -> Status {
    std::string_view part;
    GRETA_TRY(want_text("the argument", affix, &part));
    *yes = in.valid && (Front ? in.text.starts_with(part) : in.text.ends_with(part));
    return run.step(1 + part.size() / 64);
  };
  bool yes = false;
  if (slots[0]->kind() != Kind::Tuple) {
    GRETA_TRY(has(*slots[0], &yes));
  } else {
    for (const Value& each : slots[0]->items())
      if (!yes) GRETA_TRY(has(each, &yes));
  }
  *out = yes;
  return {};
}

bool is_decimal(uint32_t code) { return char_class(code) == CharClass::Decimal; }
// Superscripts, subscripts and numbers in circles are digits, too.
bool is_digit(uint32_t code) {
  const bool small = code == 0xB2 || code == 0xB3 || code == 0xB9 || code == 0x2070;
  return is_decimal(code) || small || (code >= 0x2074 && code <= 0x2089) ||
         (code >= 0x2460 && code <= 0x2468);
}
bool is_numeric(uint32_t code) { return is_number(char_class(code)); }
bool is_alpha(uint32_t code) { return is_letter(char_class(code)); }
bool is_alnum(uint32_t code) { return is_alpha(code) || is_numeric(code); }
bool is_ascii(uint32_t code) { return code < 128; }

// Whether all characters are of a kind, and there is one (but for isascii).
template <bool (*Is)(uint32_t), bool Empty = false>
Status all_are(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("the method", arguments, {}, 0, nullptr));
  const std::string_view text = self.as_string();
  GRETA_TRY(run.step(text.size() / 4));
  bool yes = Empty || !text.empty();
  for (size_t at = 0; yes && at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    yes = Is(point.code);
    at += point.bytes;
  }
  *out = yes;
  return {};
}

template <CharClass Wanted, CharClass Other>
Status has_case(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("the method", arguments, {}, 0, nullptr));
  const std::string_view text = self.as_string();
  GRETA_TRY(run.step(text.size() / 4));
  bool some = false, none = true;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const CharClass c = char_class(point.code);
    some |= c == Wanted;
    none &= c != Other && c != CharClass::Title;
    at += point.bytes;
  }
  *out = some && none;
  return {};
}

Status is_title(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("istitle()", arguments, {}, 0, nullptr));
  const std::string_view text = self.as_string();
  GRETA_TRY(run.step(text.size() / 4));
  bool within = false, some = false, right = true;
  for (size_t at = 0; right && at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const CharClass c = char_class(point.code);
    const bool high = c == CharClass::Upper || c == CharClass::Title, low = c == CharClass::Lower;
    right = high ? !within : low ? within : true;
    within = high || low;
    some |= within;
    at += point.bytes;
  }
  *out = some && right;
  return {};
}

Status is_identifier(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("isidentifier()", arguments, {}, 0, nullptr));
  const std::string_view text = self.as_string();
  GRETA_TRY(run.step(text.size() / 4));
  bool yes = !text.empty();
  for (size_t at = 0; yes && at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    yes = point.code == '_' || is_alpha(point.code) || (at > 0 && is_alnum(point.code));
    at += point.bytes;
  }
  *out = yes;
  return {};
}

constexpr FunctionRow kSearch[] = {
    {"find", search<Search::Find>},
    {"rfind", search<Search::Rfind>},
    {"index", search<Search::Index>},
    {"rindex", search<Search::Rindex>},
    {"count", search<Search::Count>},
    {"startswith", has_affix<true>},
    {"endswith", has_affix<false>},
    {"isdigit", all_are<is_digit>},
    {"isdecimal", all_are<is_decimal>},
    {"isnumeric", all_are<is_numeric>},
    {"isalpha", all_are<is_alpha>},
    {"isalnum", all_are<is_alnum>},
    {"isspace", all_are<is_blank>},
    {"isascii", all_are<is_ascii, true>},
    {"isupper", has_case<CharClass::Upper, CharClass::Lower>},
    {"islower", has_case<CharClass::Lower, CharClass::Upper>},
    {"istitle", is_title},
    {"isidentifier", is_identifier},
};

// ---- lists and tuples -------------------------------------------------------------------------

Status list_index(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* slots[3];
  GRETA_TRY(bind("index()", arguments, {"the value", "the start", "the end"}, 1, slots));
  const auto items = self.items();
  const int64_t length = int64_t(items.size());
  int64_t bounds[2] = {0, length};
  for (int i = 0; i < 2; ++i) {
    if (!slots[i + 1]) continue;
    GRETA_TRY(want_int("a bound", *slots[i + 1], &bounds[i]));
    if (bounds[i] < 0) bounds[i] = std::max<int64_t>(bounds[i] + length, 0);
  }
  for (int64_t i = bounds[0]; i < std::min(bounds[1], length); ++i) {
    bool same;
    GRETA_TRY(equal(run, items[size_t(i)], *slots[0], &same));
    if (same) return *out = i, Status{};
  }
  return fail(Code::Argument, "the value is not in the list");
}

Status list_count(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* value;
  GRETA_TRY(bind("count()", arguments, {"the value"}, 1, &value));
  int64_t count = 0;
  for (const Value& item : self.items()) {
    bool same;
    GRETA_TRY(equal(run, item, *value, &same));
    count += same;
  }
  *out = count;
  return {};
}

Status list_copy(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("copy()", arguments, {}, 0, nullptr));
  const auto items = self.items();
  GRETA_TRY(run.room(items.size_bytes()));
  *out = run.sequence({items.begin(), items.end()});
  return {};
}

constexpr FunctionRow kList[] = {{"index", list_index}, {"count", list_count}, {"copy", list_copy}};

// ---- dicts ------------------------------------------------------------------------------------

Status dict_get(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind("get()", arguments, {"the key", "the default"}, 1, slots));
  const Value* found;
  GRETA_TRY(find_key(run, *dict_of(self), *slots[0], &found));
  *out = found ? *found : slots[1] ? *slots[1] : Value(nullptr);
  return {};
}

Status dict_copy(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("copy()", arguments, {}, 0, nullptr));
  Value made = run.dict();
  for (const Value::Entry& entry : self.entries()) {
    GRETA_TRY(run.step());
    made.set(entry.key, entry.value);
  }
  *out = std::move(made);
  return {};
}

template <Flavor What>
Status dict_view(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("the method", arguments, {}, 0, nullptr));
  const auto entries = self.entries();
  GRETA_TRY(run.room(entries.size() * sizeof(Value)));
  std::vector<Value> items;
  items.reserve(entries.size());
  for (const Value::Entry& entry : entries) {
    GRETA_TRY(run.step());
    items.push_back(What == Flavor::Keys     ? entry.key
                    : What == Flavor::Values ? entry.value
                                             : run.pair(entry.key, entry.value));
  }
  *out = run.sequence(std::move(items), What);
  return {};
}

constexpr FunctionRow kDict[] = {
    {"get", dict_get},
    {"keys", dict_view<Flavor::Keys>},
    {"values", dict_view<Flavor::Values>},
    {"items", dict_view<Flavor::Items>},
    {"copy", dict_copy},
};

// ---- numbers ----------------------------------------------------------------------------------

// A bool is an int here, as in Python.
int64_t integer_of(const Value& v) { return v.is_bool() ? v.as_bool() : v.as_int(); }

template <int (*Count)(uint64_t)>
Status bits(Run&, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("the method", arguments, {}, 0, nullptr));
  const int64_t number = integer_of(self);
  *out = int64_t(Count(number < 0 ? 0 - uint64_t(number) : uint64_t(number)));
  return {};
}
int bit_length(uint64_t number) { return int(std::bit_width(number)); }
int bit_count(uint64_t number) { return std::popcount(number); }

Status float_is_integer(Run&, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("is_integer()", arguments, {}, 0, nullptr));
  const double number = self.is_float() ? self.as_double() : 0;
  *out = std::isfinite(number) && number == std::floor(number);
  return {};
}

Status as_integer_ratio(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("as_integer_ratio()", arguments, {}, 0, nullptr));
  if (!self.is_float()) return *out = run.pair(integer_of(self), Value(1)), Status{};
  int exponent = 0;
  double part = std::frexp(self.as_double(), &exponent);
  if (!std::isfinite(part)) return fail(Code::Argument, "cannot convert %g to a ratio", part);
  for (; part != std::floor(part); --exponent) part *= 2;
  const double above = std::ldexp(part, std::max(exponent, 0));
  const double below = std::ldexp(1.0, -std::min(exponent, 0));
  if (std::fabs(above) >= 0x1p63 || below >= 0x1p63)
    return fail(Code::Argument, "an integer does not fit 64 bits");
  *out = run.pair(int64_t(above), int64_t(below));
  return {};
}

Status conjugate(Run&, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("conjugate()", arguments, {}, 0, nullptr));
  *out = self.is_float() ? self : Value(integer_of(self));
  return {};
}

Status hex(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("hex()", arguments, {}, 0, nullptr));
  char text[40];
  format_text(text, sizeof text, self.as_double() == 0 ? "%.1a" : "%.13a", self.as_double());
  *out = run.text(text);
  return {};
}

constexpr FunctionRow kNumber[] = {
    {"bit_length", bits<bit_length>},  // The first five are of integers, the last four of floats.
    {"bit_count", bits<bit_count>},
    {"is_integer", float_is_integer},
    {"as_integer_ratio", as_integer_ratio},
    {"conjugate", conjugate},
    {"hex", hex},
};

// ---- cyclers and loops ------------------------------------------------------------------------

Status loop_cycle(Run&, const Value& self, const Arguments& arguments, Value* out) {
  const auto& loop = *static_cast<const LoopObject*>(self.object());
  if (arguments.places.empty()) return fail(Code::Argument, "no items for cycling given");
  *out = arguments.places[size_t(std::max<int64_t>(loop.index0, 0)) % arguments.places.size()];
  return {};
}

Status loop_changed(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  auto& loop = *static_cast<LoopObject*>(self.object());
  std::vector<Value> values = arguments.places;
  const Value now = run.sequence(std::move(values), Flavor::Tuple);
  bool same = false;
  if (loop.changed.kind() == Kind::Tuple)
    GRETA_TRY(equal(run, loop.changed, now, &same));
  else
    run.keep(&loop);  // it may come to hold itself
  if (!same) loop.changed = now;
  *out = !same;
  return {};
}

constexpr FunctionRow kLoopRows[] = {{"cycle", loop_cycle}, {"changed", loop_changed}};

Status cycler_next(Run&, const Value& self, const Arguments&, Value* out) {
  auto& cycler = *static_cast<CyclerObject*>(self.object());
  *out = cycler.items[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.items.size();
  return {};
}

Status cycler_reset(Run&, const Value& self, const Arguments&, Value* out) {
  static_cast<CyclerObject*>(self.object())->at = 0;
  *out = Value(nullptr);
  return {};
}

constexpr FunctionRow kCycler[] = {{"next", cycler_next}, {"reset", cycler_reset}};

Function look_up(FunctionRows rows, std::string_view name, const char** lasting) {
  for (const FunctionRow& row : rows)
    if (name == row.name) return *lasting = row.name, row.function;
  return nullptr;
}

}  // namespace

Function find_method(const Value& self, std::string_view name, const char** lasting) {
  switch (self.kind()) {
    case Kind::String:
      if (const Function found = look_up(text_methods(), name, lasting)) return found;
      if (const Function found = look_up(format_methods(), name, lasting)) return found;
      return look_up(kSearch, name, lasting);
    case Kind::List:
      return look_up(kList, name, lasting);
    case Kind::Tuple:
      return look_up(FunctionRows(kList).first(2), name, lasting);
    case Kind::Dict:
      return look_up(kDict, name, lasting);
    case Kind::Bool:
    case Kind::Int:
      return look_up(FunctionRows(kNumber).first(5), name, lasting);
    case Kind::Float:
      return look_up(FunctionRows(kNumber).last(4), name, lasting);
    case Kind::Object:
      if (special_of(self, Special::Loop)) return look_up(kLoopRows, name, lasting);
      if (special_of(self, Special::Cycler)) return look_up(kCycler, name, lasting);
      return nullptr;
    default:
      return nullptr;
  }
}

}  // namespace greta::jinja
