// GBNF for numbers within bounds.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "text/grammar/json_schema_parts.h"

namespace greta {
namespace {

// GBNF for the digits of a range of numbers without a sign, with zeros before them: `width` digits in all.
std::string padded(uint64_t least, uint64_t most, size_t width) {
  uint64_t unit = 1;
  for (size_t i = 1; i < width; ++i) unit *= 10;
  if (width == 1) return "[" + std::to_string(least) + "-" + std::to_string(most) + "]";
  std::string body;
  for (uint64_t digit = least / unit; digit <= most / unit; ++digit) {
    const uint64_t from = std::max(least, digit * unit) % unit,
                   to = std::min(most, digit * unit + unit - 1) % unit;
    const bool whole = from == 0 && to == unit - 1;
    const std::string rest =
        whole ? "[0-9]{" + std::to_string(width - 1) + "}" : "(" + padded(from, to, width - 1) + ")";
    body += (body.empty() ? "\"" : " | \"") + std::to_string(digit) + "\" " + rest;
  }
  return body;
}

// GBNF for the digits of a range of numbers without leading zeros.
std::string digits(uint64_t least, uint64_t most) {
  const std::string a = std::to_string(least), b = std::to_string(most);
  if (a.size() < b.size()) {
    uint64_t nines = 0;
    for (size_t i = 0; i < a.size(); ++i) nines = nines * 10 + 9;
    return digits(least, nines) + " | " + digits(nines + 1, most);
  }
  if (least == most) return "\"" + a + "\"";
  const size_t left = a.size() - 1;
  uint64_t unit = 1;
  for (size_t i = 0; i < left; ++i) unit *= 10;
  std::string body;
  const auto add = [&](const std::string& part) { body += (body.empty() ? "" : " | ") + part; };
  if (left == 0) return "[" + a + "-" + b + "]";
  for (uint64_t from = least; from <= most;) {
    const uint64_t first = from / unit, end = std::min(most, first * unit + unit - 1);
    if (from == first * unit && end == from + unit - 1) {
      const uint64_t last = (most + 1) / unit - 1;  // whole digits up to here
      add("[" + std::to_string(first) + "-" + std::to_string(last) + "] [0-9]{" + std::to_string(left) + "}");
      from = (last + 1) * unit;
    } else {
      add("\"" + std::to_string(first) + "\" (" + padded(from % unit, end % unit, left) + ")");
      from = end + 1;
    }
  }
  return body;
}

// A bound. The number may be equal to it unless it is `open`.
struct Bound {
  double at;
  int64_t whole = 0;  // the bound, if it is a whole number of 64 bits
  bool given = false, open = false, is_whole = true;
};

// In draft 4 of JSON Schema, exclusiveMinimum is true or false and says how minimum is meant.
void read_bound(const jinja::Value& schema, bool lower, Bound* out) {
  const jinja::Value& exclusive = schema[lower ? "exclusiveMinimum" : "exclusiveMaximum"];
  for (const bool open : {false, true}) {
    const jinja::Value& value = open ? exclusive : schema[lower ? "minimum" : "maximum"];
    if (!value.is_number()) continue;
    const double at = value.as_double();
    int64_t whole = 0;
    const bool is_whole = json_whole(value, &whole);
    const bool both_whole = is_whole && out->is_whole && out->given;
    const bool same = both_whole ? whole == out->whole : at == out->at;
    const bool tighter = both_whole ? (lower ? whole > out->whole : whole < out->whole)
                                    : (lower ? at > out->at : at < out->at);
    if (!out->given || tighter || (open && same)) *out = {at, whole, true, open, is_whole};
  }
  if (out->given && exclusive.is_bool() && exclusive.as_bool()) out->open = true;
}

// Makes the bound a whole number within 64 bits, towards the inside.
void make_whole(bool lower, Bound* bound) {
  if (!bound->given || bound->is_whole) return;
  const double at = lower ? __builtin_ceil(bound->at) : __builtin_floor(bound->at);
  if (at != bound->at) bound->open = false;
  bound->is_whole = true;
  // Beyond 64 bits all numbers that are written here lie on one side.
  if (at >= 0x1p63 || at < -0x1p63) bound->open = lower == (at > 0);
  bound->whole = at >= 0x1p63 ? INT64_MAX : at < -0x1p63 ? INT64_MIN : int64_t(at);
}

uint64_t magnitude(int64_t value) { return value < 0 ? uint64_t(-(value + 1)) + 1 : uint64_t(value); }

// Numbers of one sign, given by their magnitudes.
struct Side {
  const char* sign;
  uint64_t low, high;
  bool low_open, high_open;

  // Adds whole numbers, and those with a fraction if `fractions`, as alternatives.
  void add(bool fractions, std::string* out) const {
    const uint64_t first = low + low_open;
    if (high >= first + high_open) add_digits(first, high - high_open, "", out);
    if (fractions) add_fractions(out);
  }

  void add_digits(uint64_t from, uint64_t end, const char* rest, std::string* out) const {
    if (from <= end)
      *out += (out->empty() ? "" : " | ") + std::string(sign) + "(" + digits(from, end) + ")" + rest;
  }

  // A fraction may follow a whole part if the next whole number is still within the bounds. Beside an open
  // bound it has so few digits that no float rounds to the bound; beside an open lower bound it is not zero.
  void add_fractions(std::string* out) const {
    constexpr uint64_t kMost = 999'999'999'999'999;  // beyond, floats do not tell fractions apart
    constexpr size_t kDigits = 15;
    const bool upper_open = high_open && high <= kMost;
    const uint64_t end = std::min(high, kMost);  // whole parts are below
    if (low >= end) return;
    const auto places = [](uint64_t beside) { return kDigits - std::to_string(beside).size(); };
    if (const size_t most = places(low + 1); low_open && most)
      add_digits(low, low, (" \".\" [0-9]{0," + std::to_string(most - 1) + "} [1-9]").c_str(), out);
    const uint64_t first = low + low_open;
    if (const size_t most = places(end); upper_open && most && first < end)
      add_digits(end - 1, end - 1, (" \".\" [0-9]{1," + std::to_string(most) + "}").c_str(), out);
    if (first + upper_open < end) add_digits(first, end - 1 - upper_open, " \".\" [0-9]{1,16}", out);
  }
};

// ---- bounds with a fraction, and multiples ----

constexpr uint64_t kPowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};
constexpr uint32_t kMostPlaces = 9;

// How many digits the number has behind the point; kMostPlaces if it has more.
uint32_t places_of(double at) {
  for (uint32_t places = 0; places < kMostPlaces; ++places) {
    const double scaled = __builtin_round(at * double(kPowers[places]));
    if (scaled / double(kPowers[places]) == at) return places;
  }
  return kMostPlaces;
}

// Numbers of one sign whose magnitudes are `low` to `high` units, of which `unit` make one.
struct Scaled {
  const char* sign;
  uint64_t low, high;
  uint32_t places, most_places;  // digits behind the point that a unit has, and that a number may have

  void add(std::string* out) const {
    const uint64_t unit = kPowers[places];
    uint64_t first = low / unit;
    const uint64_t last = high / unit, low_rest = low % unit, high_rest = high % unit;
    if (low > high) return;
    const std::string more =
        most_places > places ? " [0-9]{0," + std::to_string(most_places - places) + "}" : "";
    // Numbers with fewer digits lie in the range, too.
    const auto edge = [&](uint64_t whole, uint64_t from, uint64_t to, const std::string& rest) {
      for (uint32_t digits = 1; digits <= places; ++digits) {
        const uint64_t of = kPowers[places - digits], first_of = (from + of - 1) / of, last_of = to / of;
        if (first_of > last_of) continue;
        *out += (out->empty() ? "" : " | ") + std::string(sign) + "\"" + std::to_string(whole) + ".\" (" +
                padded(first_of, last_of, digits) + ")" + (digits == places ? rest : "");
      }
    };
    if (first == last) {
      if (low_rest == 0) add_whole(first, first, "", out);
      return edge(first, low_rest, high_rest, "");
    }
    if (low_rest > 0) edge(first++, low_rest, unit - 1, more);
    if (first < last)
      add_whole(first, last - 1, " (\".\" [0-9]{1," + std::to_string(most_places) + "})?", out);
    add_whole(last, last, "", out);
    if (high_rest > 0) edge(last, 0, high_rest, "");
  }
  void add_whole(uint64_t from, uint64_t to, const std::string& rest, std::string* out) const {
    *out += (out->empty() ? "" : " | ") + std::string(sign) + "(" + digits(from, to) + ")" + rest;
  }
};

// Numbers within bounds of which one has a fraction. `most_places`: the digits that they may have behind the
// point. False if none of few digits lies there.
bool scaled_rule(const Bound& low, const Bound& high, uint32_t places, uint32_t most_places,
                 std::string* out) {
  constexpr double kMost = 4e15;
  const double unit = double(kPowers[places]);
  double from = low.given ? __builtin_ceil(low.at * unit - 1e-6) : -kMost;
  double to = high.given ? __builtin_floor(high.at * unit + 1e-6) : kMost;
  // What was rounded must not lie outside.
  if (low.given && (from / unit < low.at || (low.open && from / unit == low.at))) ++from;
  if (high.given && (to / unit > high.at || (high.open && to / unit == high.at))) --to;
  from = std::max(from, -kMost), to = std::min(to, kMost);
  if (from > to) return false;
  if (to >= 0) Scaled{"", uint64_t(std::max(from, 0.0)), uint64_t(to), places, most_places}.add(out);
  if (from < 0) Scaled{"\"-\" ", uint64_t(std::max(-to, 1.0)), uint64_t(-from), places, most_places}.add(out);
  return !out->empty();
}

// Multiples of a whole number: the first ones within the bounds, or all if the last digits tell them.
Status multiples_rule(uint64_t of, const Bound& low, const Bound& high, std::string* out) {
  constexpr int64_t kMost = 1000;
  uint64_t rest = of;
  std::string zeros;
  for (; rest % 10 == 0; rest /= 10) zeros += '0';
  const bool from_zero = low.given && low.whole == 0 && !low.open;
  if ((rest == 1 || rest == 2 || rest == 5) && !high.given && (!low.given || from_zero)) {
    const std::string last = rest == 1 ? "[0-9]" : rest == 2 ? "[02468]" : "[05]";
    const std::string lone = rest == 1 ? "[1-9]" : rest == 2 ? "[2468]" : "\"5\"";
    *out = std::string(low.given ? "" : "\"-\"? ") + "(\"0\" | ([1-9] [0-9]{0,9} " + last + " | " + lone +
           ") \"" + zeros + "\")";
    return {};
  }
  const int64_t step = int64_t(std::min<uint64_t>(of, INT64_MAX));
  int64_t first = 0;  // the multiple to begin with, towards zero from there
  if (low.given) {
    const int64_t at = low.whole + (low.open && low.whole < INT64_MAX);
    first = at / step + (at % step > 0);
  } else if (high.given) {
    const int64_t at = high.whole - (high.open && high.whole > INT64_MIN);
    first = at / step - (at % step < 0) - kMost;
  }
  std::vector<std::string> values;
  for (int64_t k = first; k <= first + kMost; ++k) {
    int64_t value = 0;
    if (__builtin_mul_overflow(k, step, &value)) continue;
    if (low.given && (value < low.whole || (low.open && value == low.whole))) continue;
    if (high.given && (value > high.whole || (high.open && value == high.whole))) continue;
    values.push_back(std::to_string(value));
  }
  *out = gbnf_literals(std::move(values));
  return out->empty() ? fail(Code::Unsupported, "JSON schema: no multiple of %llu lies within the bounds",
                             (unsigned long long)of)
                      : Status{};
}

Status whole_bounds_rule(Bound low_bound, Bound high_bound, std::string_view type, std::string* out) {
  const int64_t low = low_bound.given ? low_bound.whole : INT64_MIN;
  const int64_t high = high_bound.given ? high_bound.whole : INT64_MAX;
  const uint64_t below = magnitude(low), above = magnitude(high);
  const bool fractions = type == "number";
  // Zero is among those without a sign; "-0.5" is not.
  if (high >= 0 && low <= high)
    Side{"", low > 0 ? below : 0, above, low_bound.open && low >= 0, high_bound.open}.add(fractions, out);
  if (low < 0 && low <= high) {
    const bool zero = high >= 0;
    const Side side{"\"-\" ", zero ? 0 : above, below, high_bound.open && high <= 0, low_bound.open};
    if (zero)  // no "-0"
      Side{side.sign, 1, below, false, low_bound.open}.add(false, out);
    else
      side.add(false, out);
    if (fractions) side.add_fractions(out);
  }
  return out->empty() ? fail(Code::Unsupported, "JSON schema: no number of few digits lies within the bounds")
                      : Status{};
}

}  // namespace

static Status number_rule(const jinja::Value& schema, std::string_view type, SchemaReading* reading,
                          std::string* out) {
  Bound low{0}, high{0};
  read_bound(schema, true, &low);
  read_bound(schema, false, &high);
  out->clear();
  uint32_t most_places = 0;  // of a number that is a multiple of 0.01 or the like
  if (const jinja::Value* of = schema.find("multipleOf")) {
    const double step = of->as_double(), parts = 1 / step;
    int64_t whole = 0;
    if (json_whole(*of, &whole) && whole > 0) {
      type = "integer";
      if (whole > 1) {
        make_whole(true, &low), make_whole(false, &high);
        return multiples_rule(uint64_t(whole), low, high, out);
      }
    } else if (step > 0 && std::abs(parts - __builtin_round(parts)) < 1e-9 * parts) {
      const auto* power = std::find(std::begin(kPowers), std::end(kPowers), uint64_t(parts + 0.5));
      if (power == std::end(kPowers) || type == "integer")
        type = "integer";  // whole numbers are multiples of 0.25, too
      else
        most_places = uint32_t(power - std::begin(kPowers));
    } else {
      GRETA_TRY(reading->miss("multipleOf", "a number that does not divide 1"));
    }
  }
  if (most_places) {
    if (!scaled_rule(low, high, most_places, most_places, out))
      return fail(Code::Unsupported, "JSON schema: no number of few digits lies within the bounds");
    return {};
  }
  if (!low.given && !high.given) return *out = std::string(type), Status{};
  if (type == "number" && !(low.is_whole && high.is_whole)) {
    const uint32_t places = std::max(low.given ? places_of(low.at) : 0, high.given ? places_of(high.at) : 0);
    const uint32_t fine = std::min(kMostPlaces, std::max(places, 1u) + (low.open || high.open ? 1 : 0));
    const double most = std::max(low.given ? std::abs(low.at) : 0, high.given ? std::abs(high.at) : 0);
    if (most < 1e6 && scaled_rule(low, high, fine, fine + 4, out)) return {};
    out->clear();
  }
  make_whole(true, &low), make_whole(false, &high);
  return whole_bounds_rule(low, high, type, out);
}

Status json_number_rule(const jinja::Value& schema, std::string_view type, SchemaReading* reading,
                        std::string* out) {
  const Status status = number_rule(schema, type, reading, out);
  return status.ok() || !out->empty() ? status : reading->nothing(status);
}

}  // namespace greta
