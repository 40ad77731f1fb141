// Methods that search or test strings, and methods of lists, tuples, dicts, numbers, loops and cyclers. Also
// finds methods by name.
#include <algorithm>
#include <bit>
#include <cmath>

#include "text/jinja/library/library.h"

namespace greta::jinja {
namespace {

// ---- strings ----------------------------------------------------------------------------------

// Reads arguments 1 and 2 as bounds among `length` items. Negative bounds count from the end.
void read_bounds(const Call& call, int64_t length, int64_t bounds[2]) {
  for (size_t i = 0; i < 2; ++i) {
    bounds[i] = call.integer(i + 1, i ? length : 0);
    if (bounds[i] < 0) bounds[i] = std::max<int64_t>(bounds[i] + length, 0);
  }
  bounds[1] = std::min(bounds[1], length);
}

// The part of a string between two code points, as Python's slices.
struct Window {
  explicit Window(const Call& call) {
    const Text* object = text_of(call.self);
    int64_t bounds[2];
    read_bounds(call, object ? int64_t(object->length()) : 0, bounds);
    valid = bounds[0] <= bounds[1];
    if (!valid) return;
    const std::string_view whole = call.self.as_string();
    const size_t from = byte_of(whole, uint64_t(bounds[0]));
    text = whole.substr(from, byte_of(whole.substr(from), uint64_t(bounds[1] - bounds[0])));
    start = bounds[0];
  }
  std::string_view text;
  int64_t start = 0;  // in code points
  bool valid;         // false where the start is beyond the end
};

Status count(Call& call) {
  const std::string_view part = call.text(0);
  GRETA_TRY(call.run.step(call.self.as_string().size() / 8));
  const Window in(call);
  int64_t found = 0;
  if (in.valid && part.empty()) found = int64_t(code_points(in.text)) + 1;
  for (size_t at = 0; in.valid && !part.empty(); at += part.size()) {
    at = find_bytes(in.text, part, at);
    if (at == in.text.npos) break;
    GRETA_TRY(call.run.step());
    ++found;
  }
  return call.give(found);
}

template <bool Last, bool Must>
Status search(Call& call) {
  const std::string_view part = call.text(0);
  GRETA_TRY(call.run.step(call.self.as_string().size() / 8));
  const Window in(call);
  const size_t at = !in.valid ? in.text.npos
                    : Last    ? rfind_bytes(in.text, part)
                              : find_bytes(in.text, part, 0);
  if (at != in.text.npos) return call.give(in.start + int64_t(code_points(in.text.substr(0, at))));
  return Must ? fail(Code::Argument, "substring not found") : call.give(-1);
}

template <bool Front>
Status has_affix(Call& call) {
  if (call[1] || call[2]) GRETA_TRY(call.run.step(call.self.as_string().size() / 16));
  const Window in(call);
  const bool several = call[0]->kind() == Kind::Tuple;
  bool yes = false;
  for (const Value& affix : several ? call[0]->items() : std::span(call[0], 1)) {
    std::string_view part;
    GRETA_TRY(want_text("the affix", affix, &part));
    GRETA_TRY(call.run.step(1 + part.size() / 64));
    yes = in.valid && (Front ? in.text.starts_with(part) : in.text.ends_with(part));
    if (yes) break;
  }
  return call.give(yes);
}

// A method that tests the text.
template <auto Is>
Status text_is(Call& call) {
  GRETA_TRY(call.run.step(call.self.as_string().size() / 4));
  return call.give(bool(Is(call.self.as_string())));
}

// Tests that there are characters and that each is of a kind.
template <bool (*Is)(uint32_t)>
bool all_are(std::string_view text) {
  return !text.empty() && span_of(text, Is) == text.size();
}

bool is_ascii(uint32_t code) { return code < 128; }
bool is_decimal(uint32_t code) { return char_class(code) == CharClass::Decimal; }
// Superscripts, subscripts and numbers in circles are digits, too.
bool is_any_digit(uint32_t code) {
  const bool small = code == 0xB2 || code == 0xB3 || code == 0xB9 || code == 0x2070;
  return is_decimal(code) || small || (code >= 0x2074 && code <= 0x2089) ||
         (code >= 0x2460 && code <= 0x2468);
}
bool is_any_number(uint32_t code) { return is_number(char_class(code)); }
bool is_alpha(uint32_t code) { return is_letter(char_class(code)); }
bool is_alnum(uint32_t code) { return is_alpha(code) || is_any_number(code); }

bool is_title(std::string_view text) {
  bool within = false, some = false;
  for (const auto& [code, bytes, at] : CodePoints(text)) {
    const CharClass c = char_class(code);
    const bool high = c == CharClass::Upper || c == CharClass::Title, low = c == CharClass::Lower;
    if ((high && within) || (low && !within)) return false;
    within = high || low;
    some |= within;
  }
  return some;
}

bool is_identifier(std::string_view text) {
  const auto starts = [](uint32_t code) { return code == '_' || is_alpha(code); };
  const auto goes_on = [](uint32_t code) { return code == '_' || is_alnum(code); };
  return !text.empty() && starts(decode_utf8(text, 0).code) && span_of(text, goes_on) == text.size();
}

// A row for a method of a text, or of a list, that may be asked about a part.
constexpr FunctionRow within_bounds(const char* name, Status (*function)(Call&), ParameterRow what) {
  return {name, function, 1, {what, {"the start", kIntOrNone}, {"the end", kIntOrNone}}};
}

constexpr FunctionRow kSearch[] = {
    within_bounds("find", search<false, false>, {"the text", kText}),
    within_bounds("rfind", search<true, false>, {"the text", kText}),
    within_bounds("index", search<false, true>, {"the text", kText}),
    within_bounds("rindex", search<true, true>, {"the text", kText}),
    within_bounds("count", count, {"the text", kText}),
    within_bounds("startswith", has_affix<true>, {"the affix"}),
    within_bounds("endswith", has_affix<false>, {"the affix"}),
    {"isdigit", text_is<all_are<is_any_digit>>},
    {"isdecimal", text_is<all_are<is_decimal>>},
    {"isnumeric", text_is<all_are<is_any_number>>},
    {"isalpha", text_is<all_are<is_alpha>>},
    {"isalnum", text_is<all_are<is_alnum>>},
    {"isspace", text_is<all_are<is_blank>>},
    {"isascii", text_is<[](std::string_view text) { return text.empty() || all_are<is_ascii>(text); }>},
    {"isupper",
     text_is<[](std::string_view t) { return is_in_case(t, CharClass::Upper, CharClass::Lower); }>},
    {"islower",
     text_is<[](std::string_view t) { return is_in_case(t, CharClass::Lower, CharClass::Upper); }>},
    {"istitle", text_is<is_title>},
    {"isidentifier", text_is<is_identifier>},
};

// ---- lists and tuples -------------------------------------------------------------------------

Status list_index(Call& call) {
  const auto items = call.self.items();
  int64_t bounds[2];
  read_bounds(call, int64_t(items.size()), bounds);
  for (int64_t i = bounds[0]; i < bounds[1]; ++i) {
    bool same;
    GRETA_TRY(equal(call.run, items[size_t(i)], *call[0], &same));
    if (same) return call.give(i);
  }
  return fail(Code::Argument, "the value is not in the list");
}

Status list_count(Call& call) {
  int64_t found = 0;
  for (const Value& item : call.self.items()) {
    bool same;
    GRETA_TRY(equal(call.run, item, *call[0], &same));
    found += same;
  }
  return call.give(found);
}

Status list_copy(Call& call) {
  const auto items = call.self.items();
  GRETA_TRY(call.run.room(items.size_bytes()));
  return call.give_list({items.begin(), items.end()});
}

constexpr FunctionRow kList[] = {
    {"index", list_index, 1, {{"the value"}, {"the start", kInt}, {"the end", kInt}}},
    {"count", list_count, 1, {{"the value"}}},
    {"copy", list_copy},  // of lists alone
};

// ---- dicts ------------------------------------------------------------------------------------

Status dict_get(Call& call) {
  const Value* found;
  GRETA_TRY(find_key(call.run, *dict_of(call.self), *call[0], &found));
  return call.give(found ? *found : call[1] ? *call[1] : Value(nullptr));
}

Status dict_copy(Call& call) {
  Value made = call.run.dict();
  for (const Value::Entry& entry : call.self.entries()) {
    GRETA_TRY(call.run.step());
    made.set(entry.key, entry.value);
  }
  return call.give(std::move(made));
}

template <Flavor What>
Status dict_view(Call& call) {
  const auto entries = call.self.entries();
  GRETA_TRY(call.run.room(entries.size() * sizeof(Value)));
  GRETA_TRY(call.run.step(entries.size()));
  std::vector<Value> items;
  items.reserve(entries.size());
  for (const auto& [key, value] : entries)
    items.push_back(What == Flavor::Keys ? key : What == Flavor::Values ? value : call.run.pair(key, value));
  return call.give_list(std::move(items), What);
}

constexpr FunctionRow kDict[] = {
    {"get", dict_get, 1, {{"the key"}, {"the default"}}},
    {"keys", dict_view<Flavor::Keys>},
    {"values", dict_view<Flavor::Values>},
    {"items", dict_view<Flavor::Items>},
    {"copy", dict_copy},
};

// ---- numbers ----------------------------------------------------------------------------------

uint64_t magnitude(const Value& v) {
  return whole_of(v) < 0 ? 0 - uint64_t(whole_of(v)) : uint64_t(whole_of(v));
}
Status bit_length(Call& call) { return call.give(int64_t(std::bit_width(magnitude(call.self)))); }
Status bit_count(Call& call) { return call.give(int64_t(std::popcount(magnitude(call.self)))); }

Status is_integer(Call& call) {
  const double number = call.self.is_float() ? call.self.as_double() : 0;
  return call.give(std::isfinite(number) && number == std::floor(number));
}

Status as_integer_ratio(Call& call) {
  const Value& self = call.self;
  if (!self.is_float()) return call.give(call.run.pair(whole_of(self), Value(1)));
  int exponent = 0;
  double part = std::frexp(self.as_double(), &exponent);
  if (!std::isfinite(part)) return fail(Code::Argument, "cannot convert %g to a ratio", part);
  for (; part != std::floor(part); --exponent) part *= 2;
  const double above = std::ldexp(part, std::max(exponent, 0));
  const double below = std::ldexp(1.0, -std::min(exponent, 0));
  if (std::fabs(above) >= 0x1p63 || below >= 0x1p63) return beyond_64_bits();
  return call.give(call.run.pair(int64_t(above), int64_t(below)));
}

Status conjugate(Call& call) {
  return call.give(call.self.is_float() ? call.self : Value(whole_of(call.self)));
}

Status hex(Call& call) {
  char text[40];
  format_text(text, sizeof text, call.self.as_double() == 0 ? "%.1a" : "%.13a", call.self.as_double());
  return call.give(call.run.text(text));
}

constexpr FunctionRow kNumber[] = {
    {"bit_length", bit_length},  // integers have the first five, floats the last four
    {"bit_count", bit_count},
    {"is_integer", is_integer},
    {"as_integer_ratio", as_integer_ratio},
    {"conjugate", conjugate},
    {"hex", hex},
};

// ---- loops, cyclers and joiners ---------------------------------------------------------------

Status loop_cycle(Call& call) {
  const auto& loop = *static_cast<const LoopObject*>(call.self.object());
  const std::vector<Value>& places = call.arguments.places;
  if (places.empty()) return fail(Code::Argument, "no items for cycling given");
  return call.give(places[size_t(std::max<int64_t>(loop.index0, 0)) % places.size()]);
}

Status loop_changed(Call& call) {
  auto& loop = *static_cast<LoopObject*>(call.self.object());
  const Value now = call.run.sequence(std::vector<Value>(call.arguments.places), Flavor::Tuple);
  bool same = false;
  if (loop.changed.kind() == Kind::Tuple)
    GRETA_TRY(equal(call.run, loop.changed, now, &same));
  else
    call.run.keep(&loop);  // it may come to hold itself
  if (!same) loop.changed = now;
  return call.give(!same);
}

Status cycler_next(Call& call) {
  auto& cycler = *static_cast<CyclerObject*>(call.self.object());
  const size_t at = std::exchange(cycler.at, (cycler.at + 1) % cycler.items.size());
  return call.give(cycler.items[at]);
}

Status cycler_reset(Call& call) {
  static_cast<CyclerObject*>(call.self.object())->at = 0;
  return call.give(nullptr);
}

constexpr FunctionRow kLoopMethods[] = {{"cycle", loop_cycle, kReadsArguments},
                                        {"changed", loop_changed, kReadsArguments}};
constexpr FunctionRow kCycler[] = {{"next", cycler_next, kReadsArguments},
                                   {"reset", cycler_reset, kReadsArguments}};

Status call_recursive_loop(Call& call) {
  const Value items = *call[0];
  return call.run.call_loop(*static_cast<LoopObject*>(call.self.object()), items, call.result);
}

Status call_joiner(Call& call) {
  auto& joiner = *static_cast<JoinerObject*>(call.self.object());
  return call.give(std::exchange(joiner.used, true) ? joiner.separator : Value(""));
}

}  // namespace

constexpr FunctionRow loop_call = {"loop", call_recursive_loop, 1, {{"iterable"}}};
constexpr FunctionRow joiner_call = {"joiner", call_joiner};

const FunctionRow* find_method(const Value& self, std::string_view name) {
  switch (self.kind()) {
    case Kind::String: {
      const FunctionRow* row = find_row(text_methods(), name);
      return row ? row : find_row(kSearch, name);
    }
    case Kind::List:
      return find_row(kList, name);
    case Kind::Tuple:
      return find_row(FunctionRows(kList).first(2), name);
    case Kind::Dict:
      return find_row(kDict, name);
    case Kind::Bool:
    case Kind::Int:
      return find_row(FunctionRows(kNumber).first(5), name);
    case Kind::Float:
      return find_row(FunctionRows(kNumber).last(4), name);
    default:
      if (special_of(self, Special::Loop)) return find_row(kLoopMethods, name);
      return special_of(self, Special::Cycler) ? find_row(kCycler, name) : nullptr;
  }
}

}  // namespace greta::jinja
