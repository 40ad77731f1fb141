// References, and the merging of schemas that must all hold into one.
#include <algorithm>

#include "text/grammar/json_schema.h"
#include "text/grammar/json_schema_parts.h"
#include "text/unicode/unicode.h"

namespace greta {

using jinja::Value;

namespace {

// Appends a part of a JSON pointer, with ~0 and ~1 replaced by what they stand for. False for any other ~.
bool unescape_part(std::string_view part, std::string* out) {
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] != '~') {
      *out += part[i];
    } else {
      if (++i == part.size() || (part[i] != '0' && part[i] != '1')) return false;
      *out += part[i] == '0' ? '~' : '/';
    }
  }
  return true;
}

// Resolves %25 and the like, as URLs write them. False if a % lacks two digits, or the result is not UTF-8.
bool decode_percents(std::string_view text, std::string* out) {
  const auto digit = [&](size_t i) { return i < text.size() ? hex_digit(text[i]) : -1; };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      *out += text[i];
      continue;
    }
    if (digit(i + 1) < 0 || digit(i + 2) < 0) return false;
    *out += char(digit(i + 1) << 4 | digit(i + 2));
    i += 2;
  }
  return is_valid_utf8(*out);
}

// The element of a list whose index a pointer's part is, without zeros before it; null if there is none.
const Value* element_at(const Value& list, const std::string& part) {
  const bool digits = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
  if (!digits || (part.size() > 1 && part[0] == '0')) return nullptr;
  const size_t index = std::stoul(part);
  return index < list.size() ? &list.items()[index] : nullptr;
}

}  // namespace

Status find_reference(const Value& root, std::string_view pointer, const Value** out) {
  if (pointer.empty() || pointer[0] != '#')
    return fail(Code::Unsupported, "JSON schema: $ref to another document: %s", Quoted(pointer).c_str());
  std::string plain;
  if (!decode_percents(pointer.substr(1), &plain))
    return fail(Code::Argument, "JSON schema: a %% in the $ref %s is no escape", Quoted(pointer).c_str());
  const Value* target = &root;
  for (std::string_view rest = plain; !rest.empty() && target;) {
    if (rest[0] != '/')
      return fail(Code::Unsupported, "JSON schema: $ref that is no JSON pointer: %s",
                  Quoted(pointer).c_str());
    const size_t end = std::min(rest.find('/', 1), rest.size());
    std::string part;
    if (!unescape_part(rest.substr(1, end - 1), &part))
      return fail(Code::Argument, "JSON schema: a ~ in the $ref %s is neither ~0 nor ~1",
                  Quoted(pointer).c_str());
    target = target->is_list() ? element_at(*target, part) : target->find(part);
    rest.remove_prefix(end);
  }
  if (!target) return fail(Code::Argument, "JSON schema: nothing is at %s", Quoted(pointer).c_str());
  *out = target;
  return {};
}

Value schema_without(const Value& schema, std::string_view keyword) {
  Value rest = Value::dict();
  for (const Value::Entry& each : schema.entries()) {
    const std::string_view word = each.key.as_string();
    if (word != keyword && !is_schema_note(word)) rest.set(each.key, each.value);
  }
  return rest;
}

namespace {

bool is_less(const Value& a, const Value& b) {
  return a.is_int() && b.is_int() ? a.as_int() < b.as_int() : a.as_double() < b.as_double();
}

// What several schemas say together.
struct Union {
  const Value& root;
  uint32_t* parts;
  Value out = Value::dict();
  bool nothing = false;
  Value properties = Value::dict(), required = Value::list();
  std::vector<Value> closed = {};  // the properties of each schema that allows no others
  // For each schema that says what other properties must be: that schema, and its own properties.
  std::vector<std::pair<Value, Value>> others = {};

  Status add(const Value& schema, uint32_t depth) {
    if (depth > kMaxSchemaDepth || ++*parts > kMaxSchemaParts)
      return fail(Code::Unsupported, "JSON schema: it is too deep, or too large");
    if (schema.is_bool()) return nothing |= !schema.as_bool(), Status{};
    if (!schema.is_dict())
      return fail(Code::Argument, "JSON schema: expected an object in allOf, not %s", schema.type_name());
    GRETA_TRY(check_schema_keywords(schema, "in allOf, or beside anyOf or $ref"));
    GRETA_TRY(add_items(schema));
    GRETA_TRY(add_choices(schema));
    for (const Value::Entry& each : schema.entries())
      if (!is_schema_note(each.key.as_string())) GRETA_TRY(add_keyword(schema, each, depth));
    return {};
  }

  [[gnu::noinline]] Status refuse(std::string_view word) const {
    return fail(Code::Unsupported, "JSON schema: %s in two schemas that must both hold",
                Quoted(word).c_str());
  }

  Status add_keyword(const Value& schema, const Value::Entry& each, uint32_t depth) {
    const std::string_view word = each.key.as_string();
    const Value& value = each.value;
    if (word == "$ref") {
      const Value* target = nullptr;
      GRETA_TRY(find_reference(root, value.as_string(), &target));
      return add(*target, depth + 1);
    }
    if (word == "allOf") {
      for (const Value& part : value.items()) GRETA_TRY(add(part, depth + 1));
      return {};
    }
    return add_other(schema, each);
  }

  Status add_other(const Value& schema, const Value::Entry& each) {
    const std::string_view word = each.key.as_string();
    const Value& value = each.value;
    if (word == "type") return add_types(value), Status{};
    if (word == "properties") return add_properties(value), Status{};
    if (word == "required") {
      for (const Value& name : value.items()) required.push(name);
      return {};
    }
    if (word == "additionalProperties") {
      if (schema_without(value, "").size() > 0) others.emplace_back(value, schema["properties"]);
      if (value.is_bool() && !value.as_bool()) closed.push_back(schema["properties"]);
      return {};
    }
    for (const std::string_view taken : {"items", "prefixItems", "additionalItems", "enum", "const"})
      if (word == taken) return {};
    const Value* before = out.find(word);
    const bool lower = word.starts_with("min") || word == "exclusiveMinimum";
    if (lower || word.starts_with("max") || word == "exclusiveMaximum") {
      if (!before || is_less(*before, value) == lower) out.set(each.key, value);
    } else if (word == "uniqueItems") {
      out.set(each.key, value.as_bool() || (before && before->as_bool()));
    } else {
      // The merged schema has room for one of anyOf and oneOf.
      const bool choice = word == "anyOf" || word == "oneOf";
      if (before ? !json_equal(*before, value) : choice && (out.find("anyOf") || out.find("oneOf")))
        return refuse(word);
      out.set(each.key, value);
    }
    return {};
  }

  // Keeps the types that both allow. An integer is a number, too.
  void add_types(const Value& value) {
    const auto names = [](const Value& v) {
      return v.is_list() ? std::vector<Value>(v.items().begin(), v.items().end()) : std::vector<Value>{v};
    };
    const Value* before = out.find("type");
    if (!before) return out.set("type", value);
    std::vector<Value> both;
    const auto add_once = [&](const Value& name) {
      if (std::none_of(both.begin(), both.end(), [&](const Value& v) { return json_equal(v, name); }))
        both.push_back(name);
    };
    for (const Value& a : names(*before))
      for (const Value& b : names(value)) {
        const std::string_view x = a.as_string(), y = b.as_string();
        if (x == y || (x == "integer" && y == "number")) add_once(a);
        if (x == "number" && y == "integer") add_once(b);
      }
    nothing |= both.empty();
    out.set("type", both.size() == 1 ? both[0] : Value::list(std::move(both)));
  }

  void add_properties(const Value& value) {
    for (const Value::Entry& each : value.entries()) {
      const Value* before = properties.find(each.key.as_string());
      if (before && !json_equal(*before, each.value)) {
        Value both = Value::dict();
        both.set("allOf", Value::list({*before, each.value}));
        properties.set(each.key, std::move(both));
      } else {
        properties.set(each.key, each.value);
      }
    }
  }

  // items, prefixItems and additionalItems say one thing together, so two schemas must have the same.
  Status add_items(const Value& schema) {
    Value said = Value::dict();
    for (const char* word : {"items", "prefixItems", "additionalItems"})
      if (const Value* value = schema.find(word)) said.set(word, *value);
    if (said.size() == 0) return {};
    if (items.is_dict() && !json_equal(items, said)) return refuse("items");
    items = said;
    for (const Value::Entry& each : said.entries()) out.set(each.key, each.value);
    return {};
  }
  Value items = {};

  // const and enum become one list of the values that all schemas allow.
  Status add_choices(const Value& schema) {
    for (const char* word : {"const", "enum"}) {
      const Value* value = schema.find(word);
      if (!value) continue;
      const Value one = Value::list({*value});
      const Value& list = std::string_view(word) == "const" ? one : *value;
      const Value* before = out.find("enum");
      std::vector<Value> both;
      for (const Value& each : list.items())
        if (!before || std::any_of(before->items().begin(), before->items().end(),
                                   [&](const Value& v) { return json_equal(v, each); }))
          both.push_back(each);
      nothing |= both.empty();
      out.set("enum", Value::list(std::move(both)));
    }
    return {};
  }

  // If a schema allows no other properties, or says what they must be, all properties must be among its own.
  Status check_others() {
    for (const Value& own : closed) GRETA_TRY(check_own(own, "additionalProperties"));
    for (const auto& [schema, own] : others) {
      if (closed.empty()) GRETA_TRY(check_own(own, "additionalProperties"));
      if (!json_equal(schema, others[0].first) && closed.empty()) return refuse("additionalProperties");
    }
    return {};
  }
  Status check_own(const Value& own, const char* word) const {
    for (const Value::Entry& each : properties.entries())
      if (!own.find(each.key.as_string()))
        return fail(Code::Unsupported,
                    "JSON schema: the property %s is in one schema, and under %s of another",
                    Quoted(each.key.as_string()).c_str(), word);
    return {};
  }
};

}  // namespace

Status merge_schemas(const Value& root, std::span<const Value> schemas, uint32_t depth, uint32_t* parts,
                     Value* out, bool* nothing) {
  Union all{root, parts};
  for (const Value& schema : schemas) GRETA_TRY(all.add(schema, depth));
  const std::span<const Value> values = all.out["enum"].items();
  *nothing =
      all.nothing || (!values.empty() && std::none_of(values.begin(), values.end(), [&](const Value& each) {
        return json_fits_type(each, all.out["type"]);
      }));
  if (*nothing) return {};
  GRETA_TRY(all.check_others());
  if (all.properties.size()) all.out.set("properties", all.properties);
  if (all.required.size()) all.out.set("required", all.required);
  if (!all.closed.empty())
    all.out.set("additionalProperties", false);
  else if (!all.others.empty())
    all.out.set("additionalProperties", all.others[0].first);
  *out = std::move(all.out);
  return {};
}

}  // namespace greta
