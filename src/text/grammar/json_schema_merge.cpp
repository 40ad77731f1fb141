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

// The schema that has this name, by $anchor or, in draft 4, by id; null if there is none.
const Value* find_anchor(const Value& root, std::string_view name) {
  std::vector<const Value*> open{&root};
  while (!open.empty()) {
    const Value& at = *open.back();
    open.pop_back();
    const std::string_view id = at.is_dict() ? at["id"].as_string() : std::string_view();
    if (at.is_dict() && (at["$anchor"].as_string() == name || (id.starts_with('#') && id.substr(1) == name)))
      return &at;
    for (const Value::Entry& each : at.entries()) open.push_back(&each.value);
    for (const Value& each : at.items()) open.push_back(&each);
  }
  return nullptr;
}

}  // namespace

Status find_reference(const Value& root, std::string_view pointer, const Value** out) {
  // The document may call itself by its own address.
  for (const char* word : {"$id", "id"}) {
    std::string_view own = root[word].as_string();
    while (own.ends_with('#')) own.remove_suffix(1);
    if (!own.empty() && pointer.starts_with(own) &&
        (pointer.size() == own.size() || pointer[own.size()] == '#'))
      pointer.remove_prefix(own.size());
    if (pointer.empty()) pointer = "#";
  }
  if (pointer[0] != '#')
    return fail(Code::Unsupported, "JSON schema: $ref to another document: %s", Quoted(pointer).c_str());
  std::string plain;
  if (!decode_percents(pointer.substr(1), &plain))
    return fail(Code::Argument, "JSON schema: a %% in the $ref %s is no escape", Quoted(pointer).c_str());
  const Value* target = &root;
  if (!plain.empty() && plain[0] != '/') {
    target = find_anchor(root, plain);
    plain.clear();
  }
  for (std::string_view rest = plain; !rest.empty() && target;) {
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
  SchemaReading* reading;
  Value out = Value::dict();
  bool nothing = false;
  Value properties = Value::dict(), patterns = Value::dict(), required = Value::list();
  std::vector<Value> closed = {};  // the properties of each schema that allows no others
  // For each schema that says what other properties must be: that schema, and its own properties.
  std::vector<std::pair<Value, Value>> others = {};

  Status add(const Value& schema, uint32_t depth) {
    if (depth > kMaxSchemaDepth || ++reading->parts > kMaxSchemaParts)
      return fail(Code::Unsupported, "JSON schema: it is too deep, or too large");
    if (schema.is_bool()) return nothing |= !schema.as_bool(), Status{};
    if (!schema.is_dict())
      return fail(Code::Argument, "JSON schema: expected an object in allOf, not %s", schema.type_name());
    GRETA_TRY(check_schema_keywords(schema, "in allOf, or beside anyOf or $ref", reading));
    GRETA_TRY(add_items(schema));
    GRETA_TRY(add_choices(schema));
    for (const Value::Entry& each : schema.entries())
      if (!is_schema_note(each.key.as_string())) GRETA_TRY(add_keyword(schema, each, depth));
    return {};
  }

  [[gnu::noinline]] Status refuse(std::string_view word) const {
    return reading->miss(word, "in two schemas that must both hold");
  }

  Status add_keyword(const Value& schema, const Value::Entry& each, uint32_t depth) {
    const std::string_view word = each.key.as_string();
    const Value& value = each.value;
    if (word == "$ref") {
      const Value* target = nullptr;
      GRETA_TRY(find_reference(reading->root, value.as_string(), &target));
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
    if (word == "properties") return add_properties(value, &properties), Status{};
    if (word == "patternProperties") return add_properties(value, &patterns), Status{};
    if (word == "required") {
      for (const Value& name : value.items())
        if (std::ranges::none_of(required.items(), [&](const Value& v) { return json_equal(v, name); }))
          required.push(name);
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
      if (!before) out.set(each.key, value);
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

  static bool allows_nothing(const Value& schema) { return schema.is_bool() && !schema.as_bool(); }

  static void add_property(const Value& key, const Value& value, Value* to) {
    const Value* before = to->find(key.as_string());
    if (before && !allows_nothing(*before) && !allows_nothing(value) && !json_equal(*before, value)) {
      Value both = Value::dict();
      both.set("allOf", Value::list({*before, value}));
      to->set(key, std::move(both));
    } else if (!before || allows_nothing(value)) {
      to->set(key, value);
    }
  }
  static void add_properties(const Value& value, Value* to) {
    for (const Value::Entry& each : value.entries()) add_property(each.key, each.value, to);
  }

  // items, prefixItems and additionalItems say one thing together, so two schemas must have the same.
  Status add_items(const Value& schema) {
    Value said = Value::dict();
    for (const char* word : {"items", "prefixItems", "additionalItems"})
      if (const Value* value = schema.find(word)) said.set(word, *value);
    if (said.size() == 0) return {};
    if (items.is_dict() && !json_equal(items, said)) return refuse("items");
    if (items.is_dict()) return {};
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

  // If a schema allows no other properties, those of the others are left out. If it says what they must be,
  // those of the others must be that, too.
  Status check_others() {
    for (const auto& [schema, own] : others) {
      const Value mine = own;
      for (const Value::Entry& each :
           std::vector<Value::Entry>(properties.entries().begin(), properties.entries().end()))
        if (!mine.find(each.key.as_string())) add_property(each.key, schema, &properties);
      if (!json_equal(schema, others[0].first) && closed.empty()) GRETA_TRY(refuse("additionalProperties"));
    }
    if (patterns.size() > 0 && closed.size() > 1) GRETA_TRY(refuse("patternProperties"));
    for (const Value& own : closed) {
      Value kept = Value::dict();
      for (const Value::Entry& each : properties.entries()) {
        const bool needed = std::ranges::any_of(
            required.items(), [&](const Value& name) { return json_equal(name, each.key); });
        if (own.find(each.key.as_string()) || patterns.size() > 0)
          kept.set(each.key, each.value);
        else if (needed && !allows_nothing(each.value))
          nothing = true;
        else
          kept.set(each.key, Value(false));
      }
      properties = kept;
    }
    return {};
  }
};

}  // namespace

Status merge_schemas(SchemaReading* reading, std::span<const Value> schemas, uint32_t depth, Value* out,
                     bool* nothing) {
  Union all{reading};
  for (const Value& schema : schemas) GRETA_TRY(all.add(schema, depth));
  const std::span<const Value> values = all.out["enum"].items();
  *nothing =
      all.nothing || (!values.empty() && std::none_of(values.begin(), values.end(), [&](const Value& each) {
        return json_fits_type(each, all.out["type"]);
      }));
  if (*nothing) return {};
  GRETA_TRY(all.check_others());
  for (const Value& name : all.required.items())
    if (const Value* property = all.properties.find(name.as_string()))
      all.nothing |= Union::allows_nothing(*property);
  if (all.nothing) return *nothing = true, Status{};
  if (all.patterns.size()) all.out.set("patternProperties", all.patterns);
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
