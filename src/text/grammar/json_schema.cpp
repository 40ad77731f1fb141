#include "text/grammar/json_schema.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "text/grammar/grammar.h"
#include "text/grammar/json_schema_parts.h"

namespace greta {
namespace {

using jinja::Value;

// The rules that schemas refer to. White space is short, so that no model fills a page with it.
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

std::string json_literal(const Value& value) { return gbnf_literal(jinja::to_json(value)); }

class Converter {
 public:
  explicit Converter(const Value& root) : root_(root) {}

  Status convert(std::string* out) {
    std::string top;
    GRETA_TRY(check_schema(root_));
    GRETA_TRY(visit(root_, 0, "#", &top));
    if (text_.size() > kMaxGrammarBytes) return refuse("its grammar is too large");
    *out = "root ::= " + top + "\n" + text_ + kRules + kFormatRules;
    return {};
  }

 private:
  [[gnu::noinline]] std::string add_rule(const std::string& body) {
    const auto [at, added] = rules_.try_emplace(body, "r" + std::to_string(rules_.size()));
    if (added) text_ += at->second + " ::= " + body + "\n";
    return at->second;
  }
  AddRule rule_adder() {
    return [this](const std::string& body) { return add_rule(body); };
  }
  [[gnu::noinline]] void add_alternative(const std::string& body, std::string* out) {
    *out += (out->empty() ? "" : " | ") + add_rule(body);
  }

  [[gnu::noinline]] static Status refuse(const char* what) {
    return fail(Code::Unsupported, "JSON schema: %s", what);
  }
  [[gnu::noinline]] static Status wrong(const char* what) {
    return fail(Code::Argument, "JSON schema: %s", what);
  }

  // Sets *out to the name of a rule for the schema, which is at `path`. The function calls itself for schemas
  // within schemas, so functions that need a large stack frame are not inlined.
  Status visit(const Value& schema, uint32_t depth, const std::string& path, std::string* out) {
    if (depth > kMaxSchemaDepth || ++parts_ > kMaxSchemaParts || text_.size() > kMaxGrammarBytes)
      return refuse("it is too deep, or too large");
    if (schema.is_bool()) {
      if (!schema.as_bool()) return refuse("false, which allows nothing");
      return *out = "value", Status{};
    }
    if (!schema.is_dict()) return no_schema(schema, path);
    GRETA_TRY(check_schema_keywords(schema, path));
    std::string body;
    GRETA_TRY(dispatch(schema, depth, path, &body));
    *out = add_rule(body);
    return {};
  }
  [[gnu::noinline]] static Status no_schema(const Value& value, const std::string& path) {
    return fail(Code::Argument, "JSON schema: expected an object or true at %s, not %s", path.c_str(),
                value.type_name());
  }

  Status dispatch(const Value& schema, uint32_t depth, const std::string& path, std::string* out) {
    for (const char* word : {"$ref", "allOf", "anyOf", "oneOf"})
      if (const Value* value = schema.find(word)) return combined(schema, word, *value, depth, path, out);
    if (schema.find("enum") || schema.find("const")) return choices(schema, out);
    GRETA_TRY(check_text_keywords(schema));
    const Value* type = schema.find("type");
    if (!type || !type->is_list())
      return typed(schema, type ? type->as_string() : implied(schema), depth, path, out);
    for (const Value& each : type->items()) {
      std::string body;
      GRETA_TRY(typed(schema, each.as_string(), depth, path, &body));
      add_alternative(body, out);
    }
    return {};
  }

  // Converts a keyword that holds other schemas for the same value, together with the keywords beside it.
  [[gnu::noinline]] Status combined(const Value& schema, std::string_view word, const Value& value,
                                    uint32_t depth, const std::string& path, std::string* out) {
    const Value rest = schema_without(schema, word);
    const std::string place = path + "/" + std::string(word);
    const bool alone = rest.size() == 0;
    if (word == "anyOf" || word == "oneOf") return any_of(rest, value, depth, place, out);
    if (word == "$ref" && alone) return reference(value.as_string(), depth, out);
    if (word == "allOf" && alone && value.size() == 1)
      return visit(value.items()[0], depth + 1, place + "/0", out);
    return all_of({&schema, 1}, depth, path, out);
  }

  Status all_of(std::span<const Value> schemas, uint32_t depth, const std::string& path, std::string* out) {
    Value merged;
    bool nothing = false;
    GRETA_TRY(merge_schemas(root_, schemas, depth + 1, &parts_, &merged, &nothing));
    if (nothing) return fail(Code::Argument, "JSON schema: no value meets all keywords at %s", path.c_str());
    return visit(merged, depth + 1, path, out);
  }

  // Makes an alternative of each schema, merged with the keywords beside them. Schemas that contradict these
  // keywords are left out.
  Status any_of(const Value& rest, const Value& list, uint32_t depth, const std::string& path,
                std::string* out) {
    for (size_t i = 0; i < list.size(); ++i) {
      Value merged = list.items()[i];
      bool nothing = merged.is_bool() && !merged.as_bool();
      if (rest.size() > 0) {
        const Value both[] = {rest, list.items()[i]};
        GRETA_TRY(merge_schemas(root_, both, depth + 1, &parts_, &merged, &nothing));
      }
      if (nothing) continue;
      std::string rule;
      GRETA_TRY(visit(merged, depth + 1, path + "/" + std::to_string(i), &rule));
      *out += (out->empty() ? "" : " | ") + rule;
    }
    if (!out->empty()) return {};
    return fail(Code::Argument, "JSON schema: no value meets any schema at %s", path.c_str());
  }

  [[gnu::noinline]] static Status choices(const Value& schema, std::string* out) {
    std::vector<Value> values;
    GRETA_TRY(json_choices(schema, &values));
    for (const Value& each : values) *out += (out->empty() ? "" : " | ") + json_literal(each);
    return {};
  }

  // Refuses formats and patterns of other types than strings, such as OpenAPI's formats of numbers.
  [[gnu::noinline]] static Status check_text_keywords(const Value& schema) {
    const Value* type = schema.find("type");
    const Value of_type = type ? *type : Value(implied(schema));
    for (const char* word : {"format", "pattern"})
      if (schema.find(word) && !json_fits_type(Value(""), of_type))
        return fail(Code::Unsupported, "JSON schema: %s of %s", word,
                    Quoted(jinja::to_json(of_type)).c_str());
    return {};
  }

  // The type that is generated for a schema that names none: the one that its keywords are about.
  static std::string_view implied(const Value& schema) {
    struct Implied {
      const char* type;
      std::string_view words[6];
    };
    constexpr Implied kImplied[] = {
        {"object", {"properties", "required", "additionalProperties"}},
        {"array", {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "additionalItems"}},
        {"string", {"minLength", "maxLength", "format", "pattern"}},
        {"integer", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}},
    };
    for (const Implied& each : kImplied)
      for (const std::string_view word : each.words)
        if (!word.empty() && schema.find(word)) return each.type;
    return "";
  }

  Status typed(const Value& schema, std::string_view type, uint32_t depth, const std::string& path,
               std::string* out) {
    if (type == "object") return object(schema, depth, path, out);
    if (type == "array") return array(schema, depth, path, out);
    if (type == "string") return string(schema, out);
    if (type == "integer" || type == "number") return json_number_rule(schema, type, out);
    return *out = type.empty() ? "value" : std::string(type), Status{};  // boolean, null
  }

  Status reference(std::string_view pointer, uint32_t depth, std::string* out) {
    const auto [at, added] =
        references_.try_emplace(std::string(pointer), "ref" + std::to_string(references_.size()));
    *out = at->second;
    if (!added) return {};
    const Value* target = nullptr;
    GRETA_TRY(find_reference(root_, pointer, &target));
    std::string body;
    const std::string name = at->second;
    GRETA_TRY(visit(*target, depth + 1, std::string(pointer), &body));
    text_ += name + " ::= " + body + "\n";
    return {};
  }

  // Reads a count of items or characters, which is `otherwise` if it is absent.
  [[gnu::noinline]] static Status count(const Value& schema, const char* word, uint32_t otherwise,
                                        uint32_t* out) {
    const Value* value = schema.find(word);
    *out = otherwise;
    if (!value) return {};
    if (value->as_double() > kMaxGrammarRepeats)
      return fail(Code::Unsupported, "JSON schema: %s must be 0 to %u", word, kMaxGrammarRepeats);
    *out = uint32_t(value->as_double());
    return {};
  }

  [[gnu::noinline]] static std::string times(uint32_t least, uint32_t most) {
    if (most == kOpen) return "{" + std::to_string(least) + ",}";
    return "{" + std::to_string(least) + "," + std::to_string(most) + "}";
  }

  [[gnu::noinline]] static Status string(const Value& schema, std::string* out) {
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

  // Reads the schemas for the first items of a list, one for each place, and the schema for the rest. `rest`
  // is null if the schema does not restrict it.
  struct Tuple {
    std::span<const Value> first;
    const Value* rest = nullptr;
    std::string first_path, rest_path;
  };
  [[gnu::noinline]] static Status tuple_of(const Value& schema, const std::string& path, Tuple* out) {
    const Value *prefix = schema.find("prefixItems"), *items = schema.find("items");
    if (!items || !items->is_list()) {  // then additionalItems has no meaning
      *out = {prefix ? prefix->items() : std::span<const Value>(), items, path + "/prefixItems/",
              path + "/items"};
      return {};
    }
    if (prefix) return wrong("items is a list beside prefixItems");
    *out = {items->items(), schema.find("additionalItems"), path + "/items/", path + "/additionalItems"};
    return {};
  }

  Status array(const Value& schema, uint32_t depth, const std::string& path, std::string* out) {
    uint32_t least = 0, most = 0;
    GRETA_TRY(count(schema, "minItems", 0, &least));
    GRETA_TRY(count(schema, "maxItems", kOpen, &most));
    if (most < least) return wrong("maxItems is below minItems");
    Tuple tuple;
    GRETA_TRY(tuple_of(schema, path, &tuple));
    if (schema["uniqueItems"].as_bool() && most > 1) return unique(tuple, least, most, out);
    std::vector<std::string> first;
    for (const Value& each : tuple.first) {
      if (first.size() == most) break;
      first.emplace_back();
      GRETA_TRY(visit(each, depth + 1, tuple.first_path + std::to_string(first.size() - 1), &first.back()));
    }
    const bool named = !tuple.first.empty() || schema["items"].is_list();
    const bool more =
        tuple.rest ? !(tuple.rest->is_bool() && !tuple.rest->as_bool()) : !named || least > first.size();
    std::string item = "value";
    if (tuple.rest && more) GRETA_TRY(visit(*tuple.rest, depth + 1, tuple.rest_path, &item));
    if (!more && least > first.size()) return wrong("minItems is above what prefixItems and items allow");
    items(first, item, least, more ? most : uint32_t(first.size()), out);
    return {};
  }

  // The items `first`, and then as many of `item` as make `least` to `most` in all.
  [[gnu::noinline]] void items(const std::vector<std::string>& first, const std::string& item, uint32_t least,
                               uint32_t most, std::string* out) {
    const uint32_t count = uint32_t(first.size());
    const uint32_t at_least = least > count ? least - count : 0;
    const uint32_t at_most = most == kOpen ? kOpen : most - count;
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
  }

  // Items that may each come once: those of an enum, or the like.
  [[gnu::noinline]] Status unique(const Tuple& tuple, uint32_t least, uint32_t most, std::string* out) {
    const Value* items = tuple.rest;
    for (uint32_t links = 0; items && items->find("$ref") && schema_without(*items, "$ref").size() == 0;
         ++links) {
      if (links > kMaxSchemaDepth) return refuse("it is too deep, or too large");
      GRETA_TRY(find_reference(root_, (*items)["$ref"].as_string(), &items));
    }
    if (!tuple.first.empty() || !items || !(items->find("enum") || items->find("const")))
      return refuse("uniqueItems is supported only for items of an enum");
    std::vector<Value> values;
    std::string body;
    GRETA_TRY(check_schema_keywords(*items, tuple.rest_path));
    GRETA_TRY(json_choices(*items, &values));
    GRETA_TRY(json_unique_rule(values, least, most, rule_adder(), &body));
    return *out = "\"[\" ws " + body + " \"]\"", Status{};
  }

  struct Property {
    std::string pair;
    bool required;
  };

  // Properties come in their order, with a comma before each but the first that is there.
  Status object(const Value& schema, uint32_t depth, const std::string& path, std::string* out) {
    std::vector<Property> list;
    std::set<std::string_view> required, names;
    for (const Value& each : schema["required"].items()) required.insert(each.as_string());
    const Value* more = schema.find("additionalProperties");
    const bool any_more = more ? !(more->is_bool() && !more->as_bool()) : !schema.find("properties");
    std::string other = "value";
    if (more && any_more) GRETA_TRY(visit(*more, depth + 1, path + "/additionalProperties", &other));
    for (const Value::Entry& each : schema["properties"].entries()) {
      const std::string_view name = each.key.as_string();
      std::string rule;
      GRETA_TRY(visit(each.value, depth + 1, path + "/properties/" + std::string(name), &rule));
      names.insert(name);
      list.push_back({pair_of(name, rule), required.count(name) > 0});
    }
    for (const std::string_view name : required)
      if (!names.count(name)) {
        if (!any_more && more)
          return fail(Code::Argument, "JSON schema: %s is required but not allowed", Quoted(name).c_str());
        names.insert(name);
        list.push_back({pair_of(name, other), true});
      }
    return pairs(list, names, any_more ? &other : nullptr, out);
  }

  [[gnu::noinline]] static std::string pair_of(std::string_view name, const std::string& rule) {
    return json_literal(Value(name)) + " ws \":\" ws " + rule + " ws";
  }

  // Writes the rules for what follows from each property on: `fresh` if none came before it, `after` if one
  // did. `other` is the rule for values of all other names, null if there are none.
  [[gnu::noinline]] Status pairs(const std::vector<Property>& list, const std::set<std::string_view>& names,
                                 const std::string* other, std::string* out) {
    std::string fresh, after;
    if (other) {
      for (const std::string_view name : names)
        if (name.size() > kMaxKeyBytes)
          return refuse("names of more than 256 bytes beside additionalProperties");
      std::string key;
      GRETA_TRY(json_other_key(names, rule_adder(), &key));
      const std::string pair = add_rule(key + " ws \":\" ws " + *other + " ws");
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

  static constexpr uint32_t kOpen = ~0u;
  static constexpr size_t kMaxKeyBytes = 256;  // each character of a key takes a rule
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
