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

std::string json_literal(const Value& value) { return gbnf_literal(jinja::to_json(value)); }

class Converter {
 public:
  explicit Converter(SchemaReading* reading) : reading_(reading), root_(reading->root) {}

  Status convert(std::string* out) {
    std::string top;
    GRETA_TRY(check_schema(root_));
    GRETA_TRY(visit(root_, 0, "#", &top));
    if (text_.size() > kMaxGrammarBytes) return refuse("its grammar is too large");
    *out = "root ::= " + top + "\n" + text_ + kRules;
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
    if (depth > kMaxSchemaDepth || ++reading_->parts > kMaxSchemaParts || text_.size() > kMaxGrammarBytes)
      return refuse("it is too deep, or too large");
    if (schema.is_bool()) {
      if (!schema.as_bool()) return reading_->nothing(refuse("false, which allows nothing"));
      return *out = "value", Status{};
    }
    if (!schema.is_dict()) return no_schema(schema, path);
    GRETA_TRY(check_schema_keywords(schema, path, reading_));
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
    for (const char* word : {"dependencies", "dependentRequired", "dependentSchemas"})
      if (const Value* value = schema.find(word))
        return any_of(schema_without(schema, word), json_dependencies(*value), depth, path + "/" + word, out);
    if (schema.find("enum") || schema.find("const")) return choices(schema, out);
    const Value* type = schema.find("type");
    if (!type || !type->is_list())
      return typed(schema, type ? type->as_string() : json_implied_type(schema), depth, path, out);
    Status last;
    for (const Value& each : type->items()) {
      std::string body;
      bool none = false;
      last = typed(schema, each.as_string(), depth, path, &body);
      GRETA_TRY(reading_->unless_nothing(last, &none));
      if (!none) add_alternative(body, out);
    }
    return out->empty() ? reading_->nothing(last) : Status{};
  }

  // As visit, and sets *none where no value meets the schema.
  Status visit_if_any(const Value& schema, uint32_t depth, const std::string& path, bool* none,
                      std::string* out) {
    return reading_->unless_nothing(visit(schema, depth, path, out), none);
  }

  // Converts a keyword that holds other schemas for the same value, together with the keywords beside it.
  [[gnu::noinline]] Status combined(const Value& schema, std::string_view word, const Value& value,
                                    uint32_t depth, const std::string& path, std::string* out) {
    const Value rest = schema_without(schema, word);
    const std::string place = path + "/" + std::string(word);
    const bool alone = rest.size() == 0;
    if (word == "oneOf") return one_of(rest, value, depth, place, out);
    if (word == "anyOf") return any_of(rest, value, depth, place, out);
    if (word == "$ref" && alone) return reference(value.as_string(), depth, out);
    if (word == "allOf" && alone && value.size() == 1)
      return visit(value.items()[0], depth + 1, place + "/0", out);
    return all_of({&schema, 1}, depth, path, out);
  }

  Status all_of(std::span<const Value> schemas, uint32_t depth, const std::string& path, std::string* out) {
    Value merged;
    bool nothing = false;
    GRETA_TRY(merge_schemas(reading_, schemas, depth + 1, &merged, &nothing));
    if (nothing)
      return reading_->nothing(
          fail(Code::Argument, "JSON schema: no value meets all keywords at %s", path.c_str()));
    // A schema that refers to itself comes to the same merged schema again.
    return named(jinja::to_json(merged), merged, depth, path, out);
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
        GRETA_TRY(merge_schemas(reading_, both, depth + 1, &merged, &nothing));
      }
      if (nothing) continue;
      std::string rule;
      const std::string place = path + "/" + std::to_string(i);
      const Status made = rest.size() > 0 ? named(jinja::to_json(merged), merged, depth, place, &rule)
                                          : visit(merged, depth + 1, place, &rule);
      GRETA_TRY(reading_->unless_nothing(made, &nothing));
      if (!nothing) *out += (out->empty() ? "" : " | ") + rule;
    }
    if (!out->empty()) return {};
    return reading_->nothing(
        fail(Code::Argument, "JSON schema: no value meets any schema at %s", path.c_str()));
  }

  [[gnu::noinline]] Status one_of(const Value& rest, const Value& list, uint32_t depth,
                                  const std::string& path, std::string* out) {
    Value apart;
    GRETA_TRY(json_one_of(reading_, rest, list, path, &apart));
    return any_of(rest, apart, depth, path, out);
  }

  [[gnu::noinline]] Status choices(const Value& schema, std::string* out) {
    std::vector<Value> values;
    GRETA_TRY(json_choices(schema, reading_, &values));
    std::vector<std::string> texts;
    for (const Value& each : values) texts.push_back(jinja::to_json(each));
    return *out = gbnf_literals(std::move(texts)), Status{};
  }

  Status typed(const Value& schema, std::string_view type, uint32_t depth, const std::string& path,
               std::string* out) {
    if (type == "object") return object(schema, depth, path, out);
    if (type == "array") return array(schema, depth, path, out);
    if (type == "string") return string(schema, out);
    if (type == "integer" || type == "number") return number(schema, type, depth, out);
    return *out = type.empty() ? "value" : std::string(type), Status{};  // boolean, null
  }

  [[gnu::noinline]] Status number(const Value& schema, std::string_view type, uint32_t depth,
                                  std::string* out) {
    const Value both[] = {schema, json_format_bounds(schema["format"].as_string())};
    if (type == "number" || !both[1].is_dict()) return json_number_rule(schema, type, reading_, out);
    Value merged;
    bool nothing = false;
    GRETA_TRY(merge_schemas(reading_, both, depth + 1, &merged, &nothing));
    return json_number_rule(nothing ? schema : merged, type, reading_, out);
  }

  Status reference(std::string_view pointer, uint32_t depth, std::string* out) {
    const Value* target = nullptr;
    const Status found = find_reference(root_, pointer, &target);
    if (found.code == Code::Unsupported && !reading_->strict) {
      GRETA_TRY(reading_->miss("$ref", pointer));
      return *out = "value", Status{};
    }
    GRETA_TRY(found);
    return named(std::string(pointer), *target, depth, std::string(pointer), out);
  }

  // The rule of a schema that may be met again within itself. `key` tells it from others.
  Status named(const std::string& key, const Value& schema, uint32_t depth, const std::string& path,
               std::string* out) {
    const auto [at, added] = references_.try_emplace(key, "ref" + std::to_string(references_.size()));
    const std::string name = *out = at->second;
    if (impossible_.count(key))
      return reading_->nothing(fail(Code::Argument, "JSON schema: no value meets %s", path.c_str()));
    if (!added) return {};
    std::string body;
    bool none = false;
    const Status status = visit(schema, depth + 1, path, &body);
    if (!status.ok() && reading_->unless_nothing(status, &none).ok()) {  // nothing comes to rules with it
      impossible_.insert(key);
      text_ += name + " ::= \"\"\n";
      return reading_->nothing(status);
    }
    GRETA_TRY(status);
    text_ += name + " ::= " + body + "\n";
    return {};
  }

  // Reads a count of items or characters, which is `otherwise` if it is absent.
  [[gnu::noinline]] static Status count(const Value& schema, const char* word, uint32_t otherwise,
                                        uint32_t* out) {
    const Value* value = schema.find(word);
    *out = otherwise;
    if (!value) return {};
    // No text has more, so a larger bound at the top is the same as this one.
    if (value->as_double() > kMaxGrammarRepeats && std::string_view(word).starts_with("min"))
      return fail(Code::Unsupported, "JSON schema: %s must be 0 to %u", word, kMaxGrammarRepeats);
    *out = uint32_t(std::min(value->as_double(), double(kMaxGrammarRepeats)));
    return {};
  }

  [[gnu::noinline]] static std::string times(uint32_t least, uint32_t most) {
    if (most == kOpen) return "{" + std::to_string(least) + ",}";
    return "{" + std::to_string(least) + "," + std::to_string(most) + "}";
  }

  [[gnu::noinline]] Status string(const Value& schema, std::string* out) {
    uint32_t least = 0, most = 0;
    GRETA_TRY(count(schema, "minLength", 0, &least));
    GRETA_TRY(count(schema, "maxLength", kOpen, &most));
    if (most < least) return reading_->nothing(wrong("maxLength is below minLength"));
    bool any = true;
    TextSet texts;
    GRETA_TRY(json_texts(schema, reading_, &any, &texts));
    *out = any ? "\"\\\"\" char" + times(least, most) + " \"\\\"\"" : text_rule(texts);
    return {};
  }

  // A rule for one of these texts, in quotes.
  std::string text_rule(const TextSet& texts) {
    std::string rules;
    texts.append_rules("t", &rules);
    const auto [at, added] = texts_.try_emplace(std::move(rules), "t" + std::to_string(texts_.size()) + "s");
    if (added) texts.append_rules(at->second, &text_);
    return "\"\\\"\" " + at->second + "0 \"\\\"\"";
  }

  Status array(const Value& schema, uint32_t depth, const std::string& path, std::string* out) {
    uint32_t least = 0, most = 0;
    GRETA_TRY(count(schema, "minItems", 0, &least));
    GRETA_TRY(count(schema, "maxItems", kOpen, &most));
    if (most < least) return reading_->nothing(wrong("maxItems is below minItems"));
    JsonTuple tuple;
    GRETA_TRY(json_tuple(schema, path, &tuple));
    if (schema["uniqueItems"].as_bool() && most > 1) {
      const Status status = unique(tuple, least, most, out);
      if (status.code != Code::Unsupported || reading_->strict) return status;
      GRETA_TRY(reading_->miss("uniqueItems", path));
    }
    std::vector<std::string> first;
    for (const Value& each : tuple.first) {
      if (first.size() == most) break;
      first.emplace_back();
      GRETA_TRY(visit(each, depth + 1, tuple.first_path + std::to_string(first.size() - 1), &first.back()));
    }
    const bool named = !tuple.first.empty() || schema["items"].is_list();
    bool more =
        tuple.rest ? !(tuple.rest->is_bool() && !tuple.rest->as_bool()) : !named || least > first.size();
    std::string item = "value";
    bool none = false;
    if (tuple.rest && more) {
      const Status made = visit(*tuple.rest, depth + 1, tuple.rest_path, &item);
      GRETA_TRY(least > first.size() ? made : reading_->unless_nothing(made, &none));
      if (none) more = false;
    }
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
  [[gnu::noinline]] Status unique(const JsonTuple& tuple, uint32_t least, uint32_t most, std::string* out) {
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
    GRETA_TRY(check_schema_keywords(*items, tuple.rest_path, reading_));
    GRETA_TRY(json_choices(*items, reading_, &values));
    GRETA_TRY(json_unique_rule(values, least, most, rule_adder(), &body));
    return *out = "\"[\" ws " + body + " \"]\"", Status{};
  }

  // Properties come in their order, with a comma before each but the first that is there.
  Status object(const Value& schema, uint32_t depth, const std::string& path, std::string* out) {
    JsonNames names;
    GRETA_TRY(json_names(schema, reading_, &names));
    std::vector<JsonProperty> list;
    std::set<std::string_view> required, listed;
    for (const Value& each : schema["required"].items()) required.insert(each.as_string());
    const Value* more = schema.find("additionalProperties");
    if (!more) more = schema.find("unevaluatedProperties");
    uint32_t least = 0, most = 0;
    GRETA_TRY(count(schema, "minProperties", 0, &least));
    GRETA_TRY(count(schema, "maxProperties", kOpen, &most));
    const bool open = !schema.find("properties") && !schema.find("patternProperties");
    bool any_more = more ? !allows_nothing(*more) : open || least > schema["properties"].size();
    bool none = false;
    std::string other = "value";
    if (more && any_more)
      GRETA_TRY(visit_if_any(*more, depth + 1, path + "/additionalProperties", &none, &other));
    any_more &= !none;
    for (const Value::Entry& each : schema["properties"].entries()) {
      const std::string_view name = each.key.as_string();
      listed.insert(name);
      const bool allowed = !allows_nothing(each.value) && (names.any || names.set.has(name));
      if (!allowed && required.count(name)) return not_allowed(name);
      if (!allowed) continue;
      std::string rule;
      const bool needed = required.count(name) > 0;
      const Status made = visit(json_with_patterns(each.value, names, name), depth + 1,
                                path + "/properties/" + std::string(name), &rule);
      none = false;  // a property that no value meets does not come
      GRETA_TRY(needed ? made : reading_->unless_nothing(made, &none));
      if (!none) list.push_back({pair_of(name, rule), needed});
    }
    for (const std::string_view name : required)
      if (!listed.count(name)) {
        const bool matches =
            std::ranges::any_of(names.patterns, [&](const TextSet& s) { return s.has(name); });
        if ((!any_more && more && !matches) || !(names.any || names.set.has(name))) return not_allowed(name);
        listed.insert(name);
        std::string rule = other;
        if (matches) GRETA_TRY(visit(json_with_patterns(Value(true), names, name), depth + 1, path, &rule));
        list.push_back({pair_of(name, rule), true});
      }
    std::string pair;
    GRETA_TRY(other_pair(names, listed, any_more ? &other : nullptr, depth, path, &pair));
    const AddRule add = rule_adder();
    if (!json_pairs_rule(list, pair, least, most, add, out)) {
      GRETA_TRY(reading_->miss("minProperties or maxProperties", path));
      json_pairs_rule(list, pair, 0, kOpen, add, out);
    }
    *out = "\"{\" ws " + *out + " \"}\"";
    return {};
  }
  static bool allows_nothing(const Value& schema) { return schema.is_bool() && !schema.as_bool(); }
  [[gnu::noinline]] Status not_allowed(std::string_view name) {
    return reading_->nothing(
        fail(Code::Argument, "JSON schema: %s is required but not allowed", Quoted(name).c_str()));
  }

  [[gnu::noinline]] static std::string pair_of(std::string_view name, const std::string& rule) {
    return json_literal(Value(name)) + " ws \":\" ws " + rule + " ws";
  }

  // The rule for a property that is not listed, "" if there is none. Its name matches one pattern at most.
  Status other_pair(const JsonNames& names, const std::set<std::string_view>& listed,
                    const std::string* other, uint32_t depth, const std::string& path, std::string* out) {
    const auto add = [&](const std::string& key, const std::string& rule) {
      *out += (out->empty() ? "" : " | ") + key + " ws \":\" ws " + rule + " ws";
    };
    if (names.any && names.patterns.empty()) {
      if (!other) return {};
      for (const std::string_view name : listed)
        if (name.size() > kMaxKeyBytes)
          return refuse("names of more than 256 bytes beside additionalProperties");
      std::string key;
      GRETA_TRY(json_other_key(listed, rule_adder(), &key));
      add(key, *other);
    } else {
      TextSet free = names.any ? TextSet::all() : names.set, taken;
      const std::vector<std::string_view> texts(listed.begin(), listed.end());
      GRETA_TRY(TextSet::among(texts, &taken));
      GRETA_TRY(TextSet(free).subtract(taken, &free));
      for (size_t i = 0; i <= names.patterns.size(); ++i) {
        const bool rest = i == names.patterns.size();
        if (rest ? !other : allows_nothing(names.schemas[i])) continue;
        TextSet keys = free;
        if (!rest) GRETA_TRY(TextSet(keys).intersect(names.patterns[i], &keys));
        for (size_t j = 0; j < names.patterns.size(); ++j)
          if (j != i) GRETA_TRY(TextSet(keys).subtract(names.patterns[j], &keys));
        if (keys.empty()) continue;
        std::string rule = rest ? *other : "";
        bool none = false;
        if (!rest)
          GRETA_TRY(visit_if_any(names.schemas[i], depth + 1, path + "/patternProperties", &none, &rule));
        if (!none) add(text_rule(keys), rule);
      }
    }
    if (!out->empty()) *out = add_rule(*out);
    return {};
  }

  static constexpr uint32_t kOpen = ~0u;
  static constexpr size_t kMaxKeyBytes = 256;  // each character of a key takes a rule
  SchemaReading* const reading_;
  const Value& root_;
  std::map<std::string, std::string> rules_, references_, texts_;  // bodies and pointers to names
  std::set<std::string> impossible_;                               // of references_: no value meets them
  std::string text_;
};

}  // namespace

Status json_schema_grammar(std::string_view schema, const SchemaOptions& options, std::string* gbnf) {
  if (schema.size() > kMaxGrammarBytes)
    return fail(Code::Argument, "a JSON schema of %zu bytes, at most %llu", schema.size(),
                (unsigned long long)kMaxGrammarBytes);
  Value value;
  GRETA_TRY(within(jinja::parse_json(schema, &value), "JSON schema"));
  SchemaReading reading{value, options.strict};
  GRETA_TRY(Converter(&reading).convert(gbnf));
  const std::string note = reading.note();
  const LogLevel level = reading.missed.empty() ? LogLevel::Info : LogLevel::Warning;
  if (!note.empty()) options.log(level, "JSON schema: %s", note.c_str());
  return {};
}

Status parse_json_schema(std::string_view schema, const SchemaOptions& options,
                         std::shared_ptr<const Grammar>* out) {
  std::string gbnf;
  std::shared_ptr<const Grammar> grammar;
  GRETA_TRY(json_schema_grammar(schema, options, &gbnf));
  GRETA_TRY(parse_grammar(gbnf, "root", nullptr, &grammar));
  auto made = std::make_shared<Grammar>(*grammar);
  made->is_schema = true;
  *out = std::move(made);
  return {};
}

}  // namespace greta
