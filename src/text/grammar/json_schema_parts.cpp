// Values that schemas name, and rules that are made of a few texts or values.
#include "text/grammar/json_schema_parts.h"

#include <algorithm>
#include <map>

#include "text/grammar/grammar.h"
#include "text/unicode/unicode.h"

namespace greta {

using jinja::Value;

std::string gbnf_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    char code[8];
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (uint8_t(c) < 32 || c == 127)
      format_text(code, sizeof code, "\\x%02X", unsigned(uint8_t(c))), out += code;
    else
      out += c;
  }
  return out + "\"";
}

namespace {

// Where what two texts share from `at` on ends, between characters.
size_t shared_end(std::string_view a, std::string_view b, size_t at) {
  size_t end = at;
  while (end < a.size() && end < b.size() && a[end] == b[end]) ++end;
  while (end > at && end < a.size() && (a[end] & 0xC0) == 0x80) --end;
  return end;
}

// Appends alternatives for texts in order that share `done` bytes.
void append_literals(std::span<const std::string> texts, size_t done, uint32_t depth, std::string* out) {
  constexpr uint32_t kMostDepth = 50;  // of brackets
  for (size_t i = 0, next; i < texts.size(); i = next) {
    size_t end = texts[i].size();
    for (next = i + 1; next < texts.size() && depth < kMostDepth; ++next) {
      const size_t shared = shared_end(texts[i], texts[next], done);
      if (shared == done) break;
      end = std::min(end, shared);
    }
    *out += (i ? " | " : "") + gbnf_literal(std::string_view(texts[i]).substr(done, end - done));
    if (next == i + 1) continue;
    *out += " (";
    append_literals(texts.subspan(i, next - i), end, depth + 1, out);
    *out += ")";
  }
}

}  // namespace

std::string gbnf_literals(std::vector<std::string> texts) {
  std::string out;
  std::ranges::sort(texts);
  append_literals(texts, 0, 0, &out);
  return out;
}

// ---- values -----------------------------------------------------------------------------------

bool json_equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.is_int() && b.is_int() ? a.as_int() == b.as_int() : a.as_double() == b.as_double();
  if (a.kind() != b.kind() || a.size() != b.size()) return false;
  if (a.is_bool()) return a.as_bool() == b.as_bool();
  if (a.is_string()) return a.as_string() == b.as_string();
  if (a.is_list()) return std::equal(a.items().begin(), a.items().end(), b.items().begin(), json_equal);
  return std::all_of(a.entries().begin(), a.entries().end(), [&](const Value::Entry& each) {
    const Value* other = b.find(each.key.as_string());
    return other && json_equal(each.value, *other);
  });
}

bool json_fits_type(const Value& value, const Value& type) {
  if (type.is_undefined()) return true;
  if (type.is_list())
    return std::any_of(type.items().begin(), type.items().end(),
                       [&](const Value& t) { return json_fits_type(value, t); });
  const std::string_view name = type.as_string();
  const bool whole =
      value.is_int() || (value.is_float() && value.as_double() == __builtin_floor(value.as_double()));
  return (name == "null" && value.is_none()) || (name == "boolean" && value.is_bool()) ||
         (name == "integer" && whole) || (name == "number" && value.is_number()) ||
         (name == "string" && value.is_string()) || (name == "array" && value.is_list()) ||
         (name == "object" && value.is_dict());
}

namespace {

// Returns true if the value is within the schema's bounds of numbers and lengths.
bool fits_bounds(const Value& value, const Value& schema) {
  const auto holds = [&](const char* word, const Value& of, auto&& compare) {
    const Value* bound = schema.find(word);
    if (!bound || !bound->is_number()) return true;
    if (of.is_int() && bound->is_int()) return bool(compare(of.as_int(), bound->as_int()));
    return bool(compare(of.as_double(), bound->as_double()));
  };
  const auto at_least = [](auto a, auto b) { return a >= b; };
  const auto at_most = [](auto a, auto b) { return a <= b; };
  if (value.is_number())
    return holds("minimum", value, at_least) && holds("maximum", value, at_most) &&
           holds("exclusiveMinimum", value, [](auto a, auto b) { return a > b; }) &&
           holds("exclusiveMaximum", value, [](auto a, auto b) { return a < b; });
  if (!value.is_string()) return true;
  int64_t length = 0;
  for (const char c : value.as_string()) length += (c & 0xC0) != 0x80;
  return holds("minLength", length, at_least) && holds("maxLength", length, at_most);
}

}  // namespace

// Leaves out values that do not meet what stands beside enum and const. Objects and arrays among them are not
// looked into.
Status json_choices(const Value& schema, SchemaReading* reading, std::vector<Value>* out) {
  constexpr std::string_view kBeside[] = {"enum",
                                          "const",
                                          "type",
                                          "minimum",
                                          "maximum",
                                          "minLength",
                                          "maxLength",
                                          "exclusiveMinimum",
                                          "pattern",
                                          "format",
                                          "exclusiveMaximum",
                                          "multipleOf"};
  const Value *constant = schema.find("const"), *list = schema.find("enum");
  const Value one = constant ? Value::list({*constant}) : Value();
  const std::span<const Value> all = (list ? *list : one).items();
  const bool nested = std::ranges::any_of(all, [](const Value& v) { return v.is_list() || v.is_dict(); });
  for (const Value::Entry& each : schema.entries()) {
    const std::string_view word = each.key.as_string();
    if (nested && !is_schema_note(word) && std::ranges::find(kBeside, word) == std::end(kBeside))
      GRETA_TRY(reading->miss(word, "beside enum or const"));
  }
  bool any = true;
  TextSet texts;
  GRETA_TRY(json_texts(schema, reading, &any, &texts));
  const double step = schema["multipleOf"].as_double();
  const auto fits = [&](const Value& value) {
    const auto same = [&](const Value& other) { return json_equal(value, other); };
    return json_fits_type(value, schema["type"]) && fits_bounds(value, schema) &&
           (!constant || same(*constant)) && (any || !value.is_string() || texts.has(value.as_string())) &&
           (!(step > 0) || !value.is_number() || __builtin_fmod(value.as_double(), step) == 0) &&
           std::ranges::none_of(*out, same);
  };
  for (const Value& each : all)
    if (fits(each)) out->push_back(each);
  if (!out->empty()) return {};
  return reading->nothing(
      fail(Code::Argument, "JSON schema: no value of enum or const has the type and meets all else"));
}

Status json_tuple(const Value& schema, const std::string& path, JsonTuple* out) {
  const Value *prefix = schema.find("prefixItems"), *items = schema.find("items");
  if (!items || !items->is_list()) {  // then additionalItems has no meaning
    *out = {prefix ? prefix->items() : std::span<const Value>(),
            items ? items : schema.find("unevaluatedItems"), path + "/prefixItems/", path + "/items"};
    return {};
  }
  if (prefix) return fail(Code::Argument, "JSON schema: items is a list beside prefixItems");
  *out = {items->items(), schema.find("additionalItems"), path + "/items/", path + "/additionalItems"};
  return {};
}

// ---- rules ------------------------------------------------------------------------------------

Status json_other_key(const std::set<std::string_view>& names, const AddRule& add_rule, std::string* out) {
  constexpr size_t kMaxPrefixes = kMaxGrammarBytes / 64;  // each becomes a rule of about as many bytes
  const std::string any = add_rule("[^\"\\\\\\x00-\\x1F]*");
  // For each beginning of a name, the longest first: what may follow it.
  struct Next {
    std::map<uint32_t, std::string> longer;  // by character, the beginning with it
    bool is_name = false;
  };
  const auto longest_first = [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  };
  std::map<std::string, Next, decltype(longest_first)> prefixes(longest_first);
  prefixes[""];
  for (const std::string_view name : names) {
    if (std::any_of(name.begin(), name.end(),
                    [](char c) { return uint8_t(c) < 32 || c == '"' || c == '\\'; }))
      continue;
    for (const auto& [code, bytes, at] : CodePoints(name)) {
      if (prefixes.size() > kMaxPrefixes) break;
      const std::string longer(name.substr(0, at + bytes));
      prefixes[std::string(name.substr(0, at))].longer[code] = longer;
      prefixes[longer];
    }
    if (prefixes.size() > kMaxPrefixes)
      return fail(Code::Unsupported, "JSON schema: its grammar is too large");
    prefixes[std::string(name)].is_name = true;
  }
  std::map<std::string, std::string> rules;
  for (const auto& [prefix, next] : prefixes) {
    std::string body, taken;
    for (const auto& [code, longer] : next.longer) {
      char escape[16];
      format_text(escape, sizeof escape, "\\U%08X", code);
      taken += escape;
      body += "[" + std::string(escape) + "] " + rules[longer] + " | ";
    }
    body += "[^\"\\\\\\x00-\\x1F" + taken + "] " + any;
    rules[prefix] = add_rule(next.is_name ? body : "(" + body + ")?");
  }
  *out = "\"\\\"\" " + rules[""] + " \"\\\"\"";
  return {};
}

// There is a rule for each set of values that have come already; the largest sets are made first.
Status json_unique_rule(std::span<const Value> values, uint32_t least, uint32_t most, const AddRule& add_rule,
                        std::string* out) {
  constexpr size_t kMaxValues = 10;  // a rule for each of 1024 sets
  const size_t count = values.size();
  if (count > kMaxValues)
    return fail(Code::Unsupported,
                "JSON schema: uniqueItems is supported for at most %zu values, and there are %zu", kMaxValues,
                count);
  if (least > count)
    return fail(Code::Argument, "JSON schema: minItems is %u, and there are %zu values for uniqueItems",
                least, count);
  std::vector<std::string> literals;
  for (const Value& each : values) literals.push_back(add_rule(gbnf_literal(jinja::to_json(each)) + " ws"));
  std::vector<std::string> after(size_t(1) << count);  // rules of what follows; "" where nothing may
  for (size_t set = after.size(); set-- > 0;) {
    const uint32_t there = uint32_t(__builtin_popcountll(set));
    std::string body;
    for (size_t i = 0; i < count && there < most; ++i)
      if (!(set >> i & 1))
        body += (body.empty() ? "" : " | ") + std::string(there ? "\",\" ws " : "") + literals[i] + " " +
                after[set | size_t(1) << i];
    if (body.empty() || there > most) continue;
    after[set] = add_rule(there < least ? body : "(" + body + ")?");
  }
  *out = after[0];
  return {};
}

}  // namespace greta
