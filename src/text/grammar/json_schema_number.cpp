// GBNF for numbers within bounds.
#include <algorithm>
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
  int64_t at;
  bool given = false, open = false;
};

Status read_bound(const jinja::Value& schema, bool lower, Bound* out) {
  for (const bool open : {false, true}) {
    const char* const word = lower  ? open ? "exclusiveMinimum" : "minimum"
                             : open ? "exclusiveMaximum"
                                    : "maximum";
    const jinja::Value* value = schema.find(word);
    int64_t at = 0;
    if (!value) continue;
    if (!json_whole(*value, &at))
      return fail(Code::Unsupported, "JSON schema: %s must be a whole number of 64 bits", word);
    const bool tighter = lower ? at > out->at : at < out->at;
    if (!out->given || tighter || (open && at == out->at)) *out = {at, true, open};
  }
  return {};
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

}  // namespace

Status json_number_rule(const jinja::Value& schema, std::string_view type, std::string* out) {
  Bound low{INT64_MIN}, high{INT64_MAX};
  GRETA_TRY(read_bound(schema, true, &low));
  GRETA_TRY(read_bound(schema, false, &high));
  if (!low.given && !high.given) return *out = std::string(type), Status{};
  out->clear();
  const uint64_t below = magnitude(low.at), above = magnitude(high.at);
  const bool fractions = type == "number";
  // Zero is among those without a sign; "-0.5" is not.
  if (high.at >= 0 && low.at <= high.at)
    Side{"", low.at > 0 ? below : 0, above, low.open && low.at >= 0, high.open}.add(fractions, out);
  if (low.at < 0 && low.at <= high.at) {
    const bool zero = high.at >= 0;
    const Side side{"\"-\" ", zero ? 0 : above, below, high.open && high.at <= 0, low.open};
    if (zero)  // no "-0"
      Side{side.sign, 1, below, false, low.open}.add(false, out);
    else
      side.add(false, out);
    if (fractions) side.add_fractions(out);
  }
  return out->empty() ? fail(Code::Unsupported, "JSON schema: no number of few digits lies within the bounds")
                      : Status{};
}

}  // namespace greta
