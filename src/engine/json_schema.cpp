#include "engine/json_schema.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "engine/grammar.h"
#include "engine/json_schema_parts.h"
#include "engine/unicode.h"

namespace greta {
namespace {

using jinja::Value;

// Rules that schemas refer to. The white space is short, so that no model fills a page with it.
constexpr const char* kRules =
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n"
    "hex ::= [0-9a-fA-F]\n"
    "char ::= [^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" ([0-9a-cA-CefEF] hex hex hex | "
    "[dD] [0-7] hex hex))\n"
    "string ::= \"\\\"\" char* \"\\\"\"\n"
    "integer ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15})\n"
    "number ::= integer (\".\" [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?\n"
    "boolean ::= \"true\" | \"false\"\n"
    "null ::= \"null\"\n"
    "array ::= \"[\" ws (value ws (\",\" ws value ws)*)? \"]\"\n"
    "object ::= \"{\" ws (pair (\",\" ws pair)*)? \"}\"\n"
    "pair ::= string ws \":\" ws value ws\n"
    "value ::= object | array | string | number | boolean | null\n";

struct Format {
  std::string_view name;
  const char* rule;
};
constexpr Format kFormats[] = {
    {"date", "day"},
    {"time", "clock"},
    {"date-time", "day \"T\" clock"},
    {"uuid", "hex{8} \"-\" hex{4} \"-\" hex{4} \"-\" hex{4} \"-\" hex{12}"},
};
constexpr const char* kFormatRules =
    "day ::= [0-9]{4} \"-\" (\"02-\" two-eight | (\"0\" [469] | \"11\") \"-\" (two-eight | \"29\" | \"30\") |"
    " (\"0\" [13578] | \"1\" [02]) \"-\" (two-eight | \"29\" | \"3\" [01]))\n"
    "two-eight ::= \"0\" [1-9] | \"1\" [0-9] | \"2\" [0-8]\n"
    "clock ::= ([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9] \":\" [0-5] [0-9] (\".\" [0-9]{1,6})? (\"Z\" | "
    "[-+] (\"0\" [0-9] | \"1\" [0-2]) \":\" [0-5] [0-9])\n";

const std::set<std::string_view> kKnown = {"$ref",
                                           "type",
                                           "enum",
                                           "const",
                                           "anyOf",
                                           "oneOf",
                                           "allOf",
                                           "properties",
                                           "required",
                                           "additionalProperties",
                                           "items",
                                           "prefixItems",
                                           "minItems",
                                           "maxItems",
                                           "minLength",
                                           "maxLength",
                                           "format",
                                           "pattern",
                                           "minimum",
                                           "maximum",
                                           "exclusiveMinimum",
                                           "exclusiveMaximum"};

std::string json_literal(const Value& value) { return gbnf_literal(jinja::to_json(value)); }

class Converter {
 public:
  explicit Converter(const Value& root) : root_(root) {}

  Status convert(std::string* out) {
    std::string top;
    GRETA_TRY(visit(root_, 0, &top));
    if (text_.size() > kMaxGrammarBytes) return refuse("its grammar is too large");
    *out = "root ::= " + top + "\n" + text_ + kRules + kFormatRules;
    return {};
  }

 private:
  std::string add_rule(const std::string& body) {
    const auto [at, added] = rules_.try_emplace(body, "r" + std::to_string(rules_.size()));
    if (added) text_ += at->second + " ::= " + body + "\n";
    return at->second;
  }

  static Status refuse(const char* what) { return fail(Code::Unsupported, "JSON schema: %s", what); }

  // The name of a rule for the schema.
  Status visit(const Value& schema, uint32_t depth, std::string* out) {
    if (depth > kMaxSchemaDepth || ++parts_ > kMaxSchemaParts || text_.size() > kMaxGrammarBytes)
      return refuse("it is too deep, or too large");
    if (schema.is_bool()) {
      if (!schema.as_bool()) return refuse("false, which allows nothing");
      return *out = "value", Status{};
    }
    if (!schema.is_dict())
      return fail(Code::Argument, "JSON schema: expected an object or true, not %s", schema.type_name());
    for (const Value::Entry& each : schema.entries()) {
      const std::string_view key = each.key.as_string();
      if (!is_schema_note(key) && !kKnown.count(key))
        return fail(Code::Unsupported, "JSON schema: %s is not supported", Quoted(key).c_str());
    }
    std::string body;
    GRETA_TRY(dispatch(schema, depth, &body));
    *out = add_rule(body);
    return {};
  }

  // How many keywords besides notes and these there are.
  static bool has_only(const Value& schema, std::initializer_list<std::string_view> keys) {
    for (const Value::Entry& each : schema.entries())
      if (!is_schema_note(each.key.as_string()) &&
          std::find(keys.begin(), keys.end(), each.key.as_string()) == keys.end())
        return false;
    return true;
  }

  Status dispatch(const Value& schema, uint32_t depth, std::string* out) {
    if (schema.find("$ref")) return reference(schema, depth, out);
    for (const char* word : {"anyOf", "oneOf"})
      if (const Value* list = schema.find(word)) {
        if (!has_only(schema, {word}))
          return fail(Code::Unsupported, "JSON schema: other keywords beside %s", word);
        return any_of(*list, depth, out);
      }
    if (const Value* all = schema.find("allOf")) {
      if (all->size() == 1 && has_only(schema, {"allOf"})) return visit(all->items()[0], depth + 1, out);
      Value merged;
      GRETA_TRY(merge_schemas(root_, schema, depth + 1, &parts_, &merged));
      return visit(merged, depth + 1, out);
    }
    if (const Value* constant = schema.find("const")) {
      if (!has_only(schema, {"const", "type"})) return refuse("other keywords beside const");
      if (!fits_type(*constant, schema["type"]))
        return fail(Code::Argument, "JSON schema: const is not of the type");
      return *out = json_literal(*constant), Status{};
    }
    if (const Value* list = schema.find("enum")) {
      if (!has_only(schema, {"enum", "type"})) return refuse("other keywords beside enum");
      if (list->size() == 0) return fail(Code::Argument, "JSON schema: enum without values");
      for (const Value& each : list->items())
        if (fits_type(each, schema["type"])) *out += (out->empty() ? "" : " | ") + json_literal(each);
      return out->empty() ? fail(Code::Argument, "JSON schema: no value of enum has the type") : Status{};
    }
    const Value* type = schema.find("type");
    const Value of_type = type ? *type : Value(implied(schema));
    for (const char* word : {"format", "pattern"})  // OpenAPI has formats of numbers too
      if (schema.find(word) && !fits_type(Value(""), of_type))
        return fail(Code::Unsupported, "JSON schema: %s of %s", word,
                    Quoted(jinja::to_json(of_type)).c_str());
    if (type && type->is_list()) {
      for (const Value& each : type->items()) {
        std::string body;
        GRETA_TRY(typed(schema, each.as_string(), depth, &body));
        *out += (out->empty() ? "" : " | ") + add_rule(body);
      }
      return out->empty() ? fail(Code::Argument, "JSON schema: type without types") : Status{};
    }
    return typed(schema, type ? type->as_string() : implied(schema), depth, out);
  }

  // Whether a value has the type, or one of the types, that `type` names; undefined names all.
  static bool fits_type(const Value& value, const Value& type) {
    if (type.is_undefined()) return true;
    if (type.is_list())
      return std::any_of(type.items().begin(), type.items().end(),
                         [&](const Value& t) { return fits_type(value, t); });
    const std::string_view name = type.as_string();
    return (name == "null" && value.is_none()) || (name == "boolean" && value.is_bool()) ||
           (name == "integer" && value.is_int()) || (name == "number" && value.is_number()) ||
           (name == "string" && value.is_string()) || (name == "array" && value.is_list()) ||
           (name == "object" && value.is_dict());
  }

  // Keywords that only say something about one type: that one is generated.
  static std::string_view implied(const Value& schema) {
    constexpr std::pair<const char*, const char*> kWords[] = {
        {"properties", "object"}, {"required", "object"},          {"additionalProperties", "object"},
        {"items", "array"},       {"prefixItems", "array"},        {"minItems", "array"},
        {"maxItems", "array"},    {"minLength", "string"},         {"maxLength", "string"},
        {"format", "string"},     {"pattern", "string"},           {"minimum", "integer"},
        {"maximum", "integer"},   {"exclusiveMinimum", "integer"}, {"exclusiveMaximum", "integer"}};
    for (const auto& [word, type] : kWords)
      if (schema.find(word)) return type;
    return "";
  }

  Status typed(const Value& schema, std::string_view type, uint32_t depth, std::string* out) {
    if (type == "object") return object(schema, depth, out);
    if (type == "array") return array(schema, depth, out);
    if (type == "string") return string(schema, out);
    if (type == "integer" || type == "number") return json_number_rule(schema, type, out);
    if (type == "boolean" || type == "null" || type.empty())
      return *out = type.empty() ? "value" : std::string(type), Status{};
    return fail(Code::Argument, "JSON schema: no type is called %s", Quoted(type).c_str());
  }

  Status reference(const Value& schema, uint32_t depth, std::string* out) {
    if (!has_only(schema, {"$ref"})) return refuse("other keywords beside $ref");
    const std::string_view pointer = schema["$ref"].as_string();
    const auto [at, added] =
        references_.try_emplace(std::string(pointer), "ref" + std::to_string(references_.size()));
    *out = at->second;
    if (!added) return {};
    const Value* target = nullptr;
    GRETA_TRY(find_reference(root_, pointer, &target));
    std::string body;
    const std::string name = at->second;
    GRETA_TRY(visit(*target, depth + 1, &body));
    text_ += name + " ::= " + body + "\n";
    return {};
  }

  Status any_of(const Value& list, uint32_t depth, std::string* out) {
    for (const Value& each : list.items()) {
      std::string rule;
      GRETA_TRY(visit(each, depth + 1, &rule));
      *out += (out->empty() ? "" : " | ") + rule;
    }
    return out->empty() ? fail(Code::Argument, "JSON schema: no schemas to choose from") : Status{};
  }

  // A count of items or characters; `otherwise` where it is absent.
  static Status count(const Value& schema, const char* word, uint32_t otherwise, uint32_t* out) {
    const Value* value = schema.find(word);
    *out = otherwise;
    if (!value) return {};
    const bool whole =
        value->is_int() || (value->is_float() && value->as_double() == double(int64_t(value->as_double())));
    if (!whole || value->as_double() < 0 || value->as_double() > kMaxGrammarRepeats)
      return fail(Code::Unsupported, "JSON schema: %s must be 0 to %u", word, kMaxGrammarRepeats);
    *out = uint32_t(value->as_double());
    return {};
  }

  static std::string times(uint32_t least, uint32_t most) {
    if (most == kOpen) return "{" + std::to_string(least) + ",}";
    return "{" + std::to_string(least) + "," + std::to_string(most) + "}";
  }

  static Status string(const Value& schema, std::string* out) {
    uint32_t least = 0, most = 0;
    GRETA_TRY(count(schema, "minLength", 0, &least));
    GRETA_TRY(count(schema, "maxLength", kOpen, &most));
    if (most < least) return fail(Code::Argument, "JSON schema: maxLength is below minLength");
    *out = "\"\\\"\" char" + times(least, most) + " \"\\\"\"";
    const Value *format = schema.find("format"), *pattern = schema.find("pattern");
    if (pattern) {
      if (format || schema.find("minLength") || schema.find("maxLength"))
        return refuse("format or lengths beside pattern");
      std::string body;
      GRETA_TRY(json_pattern_rule(pattern->as_string(), &body));
      return *out = "\"\\\"\" " + body + " \"\\\"\"", Status{};
    }
    if (!format) return {};
    const auto* known = std::find_if(std::begin(kFormats), std::end(kFormats),
                                     [&](const Format& f) { return f.name == format->as_string(); });
    if (known == std::end(kFormats) || schema.find("minLength") || schema.find("maxLength"))
      return fail(Code::Unsupported, "JSON schema: the format %s, or lengths beside it",
                  Quoted(format->as_string()).c_str());
    *out = "\"\\\"\" " + std::string(known->rule) + " \"\\\"\"";
    return {};
  }

  Status array(const Value& schema, uint32_t depth, std::string* out) {
    uint32_t least = 0, most = 0;
    GRETA_TRY(count(schema, "minItems", 0, &least));
    GRETA_TRY(count(schema, "maxItems", kOpen, &most));
    if (most < least) return fail(Code::Argument, "JSON schema: maxItems is below minItems");
    const Value* prefix = schema.find("prefixItems");
    const Value* items = schema.find("items");
    std::vector<std::string> first;
    if (prefix)
      for (const Value& each : prefix->items()) {
        if (first.size() == most) break;
        first.emplace_back();
        GRETA_TRY(visit(each, depth + 1, &first.back()));
      }
    const bool more = items ? !(items->is_bool() && !items->as_bool()) : !prefix || least > first.size();
    std::string item = "value";
    if (items && more) GRETA_TRY(visit(*items, depth + 1, &item));
    const uint32_t count = uint32_t(first.size());
    if (!more && least > count)
      return fail(Code::Argument, "JSON schema: minItems is above what prefixItems and items allow");
    const uint32_t at_least = least > count ? least - count : 0;
    const uint32_t at_most = !more ? 0 : most == kOpen ? kOpen : most - count;
    std::string body;
    if (count == 0) {
      if (at_most > 0) {
        const uint32_t others = at_most == kOpen ? kOpen : at_most - 1;
        body = item + " ws (\",\" ws " + item + " ws)" + times(at_least ? at_least - 1 : 0, others);
        if (at_least == 0) body = "(" + body + ")?";
      }
    } else {
      if (at_most > 0) body = "(\",\" ws " + item + " ws)" + times(at_least, at_most);
      for (uint32_t i = count; i-- > 0;) {
        body = (i ? "\",\" ws " : "") + first[i] + " ws " + body;
        if (i >= least) body = add_rule("(" + body + ")?");
      }
    }
    *out = "\"[\" ws " + body + " \"]\"";
    return {};
  }

  // Properties in their order, with a comma before all but the first that is there. Rules: `fresh` from here
  // on if none came before, `after` if one did.
  Status object(const Value& schema, uint32_t depth, std::string* out) {
    struct Property {
      std::string pair;
      bool required;
    };
    std::vector<Property> list;
    std::set<std::string_view> required, names;
    if ((schema.find("required") && !schema["required"].is_list()) ||
        (schema.find("properties") && !schema["properties"].is_dict()))
      return fail(Code::Argument, "JSON schema: required must be a list, properties an object");
    for (const Value& each : schema["required"].items()) required.insert(each.as_string());
    const Value* more = schema.find("additionalProperties");
    const bool any_more = more ? !(more->is_bool() && !more->as_bool()) : !schema.find("properties");
    std::string other = "value";
    if (more && any_more) GRETA_TRY(visit(*more, depth + 1, &other));
    for (const Value::Entry& each : schema["properties"].entries()) {
      std::string rule;
      GRETA_TRY(visit(each.value, depth + 1, &rule));
      names.insert(each.key.as_string());
      list.push_back({json_literal(each.key) + " ws \":\" ws " + rule + " ws",
                      required.count(each.key.as_string()) > 0});
    }
    for (const std::string_view name : required)
      if (!names.count(name)) {
        if (!any_more && more)
          return fail(Code::Argument, "JSON schema: %s is required but not allowed", Quoted(name).c_str());
        names.insert(name);
        list.push_back({json_literal(Value(name)) + " ws \":\" ws " + other + " ws", true});
      }
    std::string fresh, after;
    if (any_more) {
      for (const std::string_view name : names)
        if (name.size() > kMaxKeyBytes)
          return refuse("names of more than 256 bytes beside additionalProperties");
      const std::string pair = add_rule(other_key(names) + " ws \":\" ws " + other + " ws");
      after = add_rule("(\",\" ws " + pair + ")*");
      fresh = add_rule("(" + pair + " " + after + ")?");
    }
    for (size_t i = list.size(); i-- > 0;) {
      const std::string pair = add_rule(list[i].pair);
      const std::string here = pair + " " + after, next = "\",\" ws " + pair + " " + after;
      const auto or_else = [](const std::string& a, const std::string& b) {
        return b.empty() ? "(" + a + ")?" : a + " | " + b;
      };
      fresh = add_rule(list[i].required ? here : or_else(here, fresh));
      after = add_rule(list[i].required ? next : or_else(next, after));
    }
    *out = "\"{\" ws " + fresh + " \"}\"";
    return {};
  }

  // A key that is none of these, written without escapes, so that it is none of them in another spelling.
  std::string other_key(const std::set<std::string_view>& names) {
    std::set<std::string> plain;
    for (const std::string_view name : names)
      if (std::none_of(name.begin(), name.end(),
                       [](char c) { return uint8_t(c) < 32 || c == '"' || c == '\\'; }))
        plain.insert(std::string(name));
    return "\"\\\"\" " + unlike(plain, 0) + " \"\\\"\"";
  }

  // What differs from all of `names` after their first `at` bytes, which they share. Names are sorted.
  std::string unlike(const std::set<std::string>& names, size_t at) {
    if (names.empty() || text_.size() > kMaxGrammarBytes) return "[^\"\\\\\\x00-\\x1F]*";
    std::map<uint32_t, std::set<std::string>> by_next;
    bool ends_here = false;
    size_t bytes = 0;
    for (const std::string& name : names) {
      if (name.size() == at) {
        ends_here = true;
        continue;
      }
      by_next[decode_utf8(name, at).code].insert(name);
    }
    std::string body, taken;
    for (const auto& [code, rest] : by_next) {
      char escape[16];
      format_text(escape, sizeof escape, "\\U%08X", code);
      taken += escape;
      bytes = decode_utf8(*rest.begin(), at).bytes;
      body += "[" + std::string(escape) + "] " + unlike(rest, at + bytes) + " | ";
    }
    body += "[^\"\\\\\\x00-\\x1F" + taken + "] " + unlike({}, 0);
    return add_rule(ends_here ? body : "(" + body + ")?");
  }

  static constexpr uint32_t kOpen = ~0u;
  static constexpr size_t kMaxKeyBytes = 256;  // unlike() goes as deep
  const Value& root_;
  std::map<std::string, std::string> rules_, references_;  // bodies and pointers to names
  std::string text_;
  uint32_t parts_ = 0;
};

}  // namespace

Status json_schema_grammar(std::string_view schema, std::string* gbnf) {
  if (schema.size() > kMaxGrammarBytes)
    return fail(Code::Argument, "a JSON schema of %zu bytes, at most %llu", schema.size(),
                (unsigned long long)kMaxGrammarBytes);
  Value value;
  GRETA_TRY(within(jinja::parse_json(schema, &value), "JSON schema"));
  return Converter(value).convert(gbnf);
}

}  // namespace greta
