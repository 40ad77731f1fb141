// Numbers within bounds to GBNF.
#include <algorithm>
#include <tuple>

#include "engine/json_schema_parts.h"

namespace greta {
namespace {

// Digits of a range of numbers without a sign, with zeros before them, `width` digits in all.
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

// The same without zeros.
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

}  // namespace

Status json_number_rule(const jinja::Value& schema, std::string_view type, std::string* out) {
  constexpr int64_t kMost = 999'999'999'999'999;
  int64_t least = -kMost, most = kMost;
  bool bounded = false;
  for (const auto& [word, lower, step] : {std::tuple{"minimum", true, 0},
                                          {"exclusiveMinimum", true, 1},
                                          {"maximum", false, 0},
                                          {"exclusiveMaximum", false, 1}}) {
    const jinja::Value* value = schema.find(word);
    if (!value) continue;
    const double given = value->as_double();
    if (!value->is_number() || !(given >= -double(kMost) && given <= double(kMost)) ||
        given != double(int64_t(given)))
      return fail(Code::Unsupported, "JSON schema: %s must be a whole number of at most 15 digits", word);
    bounded = true;
    if (lower)
      least = std::max(least, int64_t(given) + step);
    else
      most = std::min(most, int64_t(given) - step);
  }
  if (!bounded) return *out = std::string(type), Status{};
  if (least > most) return fail(Code::Unsupported, "JSON schema: no whole number is within the bounds");
  std::string whole, part;  // with a fraction a number must have room up to the next whole one
  const auto add = [](std::string* to, const std::string& sign, int64_t from, int64_t end) {
    if (from <= end)
      *to += (to->empty() ? "" : " | ") + sign + "(" + digits(uint64_t(from), uint64_t(end)) + ")";
  };
  add(&whole, "", std::max<int64_t>(least, 0), most);
  add(&whole, "\"-\" ", std::max<int64_t>(-most, 1), -least);
  add(&part, "", std::max<int64_t>(least, 0), most - 1);
  add(&part, "\"-\" ", std::max<int64_t>(-most, 0), -least - 1);
  *out = whole;
  if (type == "number" && !part.empty()) *out += " | (" + part + ") \".\" [0-9]{1,16}";
  return {};
}

}  // namespace greta
