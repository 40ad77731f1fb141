// References, and schemas of which all must hold.
#include "engine/json_schema_parts.h"

#include <algorithm>

#include "engine/json_schema.h"
#include "engine/unicode.h"

namespace greta {
namespace {

using jinja::Value;

// Keywords that say nothing about what a text may be.
constexpr std::string_view kNotes[] = {"$schema",    "$id",         "$comment",  "$defs",    "definitions",
                                       "title",      "description", "default",   "examples", "example",
                                       "deprecated", "readOnly",    "writeOnly", "name",     "strict"};

}  // namespace

bool is_schema_note(std::string_view keyword) {
  return std::find(std::begin(kNotes), std::end(kNotes), keyword) != std::end(kNotes);
}

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

Status find_reference(const Value& root, std::string_view pointer, const Value** out) {
  if (pointer.empty() || pointer[0] != '#')
    return fail(Code::Unsupported, "JSON schema: $ref to another document");
  const Value* target = &root;
  std::string_view rest = pointer.substr(1);
  while (!rest.empty() && target) {
    if (rest[0] != '/') return fail(Code::Unsupported, "JSON schema: $ref that is no JSON pointer");
    const size_t end = std::min(rest.find('/', 1), rest.size());
    std::string key;
    for (size_t i = 1; i < end; ++i) {
      const bool escaped = rest[i] == '~' && i + 1 < end;
      key += escaped ? (rest[++i] == '1' ? '/' : '~') : rest[i];
    }
    target = target->find(key);
    rest.remove_prefix(end);
  }
  if (!target) return fail(Code::Argument, "JSON schema: nothing is at %s", Quoted(pointer).c_str());
  *out = target;
  return {};
}

namespace {

// What the schemas of an allOf say together, as long as they are of objects.
struct Union {
  const Value& root;
  uint32_t* parts;
  Value properties = Value::dict(), required = Value::list();
  std::vector<Value> closed = {};  // properties of those that allow no others

  Status add(const Value& schema, uint32_t depth) {
    if (depth > kMaxSchemaDepth || ++*parts > kMaxSchemaParts)
      return fail(Code::Unsupported, "JSON schema: it is too deep, or too large");
    if (!schema.is_dict())
      return fail(Code::Argument, "JSON schema: expected an object in allOf, not %s", schema.type_name());
    for (const Value::Entry& each : schema.entries()) GRETA_TRY(add_keyword(each, depth));
    const Value& more = schema["additionalProperties"];
    if (more.is_bool() && !more.as_bool()) closed.push_back(schema["properties"]);
    return {};
  }

  Status add_keyword(const Value::Entry& each, uint32_t depth) {
    const std::string_view word = each.key.as_string();
    const Value& value = each.value;
    if (is_schema_note(word)) return {};
    if (word == "$ref") {
      const Value* target = nullptr;
      GRETA_TRY(find_reference(root, value.as_string(), &target));
      return add(*target, depth + 1);
    }
    if (word == "allOf") {
      for (const Value& part : value.items()) GRETA_TRY(add(part, depth + 1));
      return {};
    }
    if (word == "properties") return add_properties(value);
    if (word == "required") {
      for (const Value& name : value.items()) required.push(name);
      return {};
    }
    const bool fits =
        word == "type" ? value.as_string() == "object" : word == "additionalProperties" && value.is_bool();
    return fits ? Status{}
                : fail(Code::Unsupported, "JSON schema: %s in an allOf of several", Quoted(word).c_str());
  }

  Status add_properties(const Value& value) {
    for (const Value::Entry& each : value.entries()) {
      const Value* before = properties.find(each.key.as_string());
      if (before && jinja::to_json(*before) != jinja::to_json(each.value))
        return fail(Code::Unsupported, "JSON schema: allOf has two schemas for the property %s",
                    Quoted(each.key.as_string()).c_str());
      properties.set(each.key, each.value);
    }
    return {};
  }

  // Where one of them has additionalProperties false, all must be among its own.
  Status check_closed() const {
    for (const Value& own : closed)
      for (const Value::Entry& each : properties.entries())
        if (!own.find(each.key.as_string()))
          return fail(Code::Unsupported,
                      "JSON schema: allOf allows the property %s in one schema and not in another",
                      Quoted(each.key.as_string()).c_str());
    return {};
  }
};

}  // namespace

Status merge_schemas(const Value& root, const Value& schema, uint32_t depth, uint32_t* parts, Value* out) {
  Union all{root, parts};
  GRETA_TRY(all.add(schema, depth));
  GRETA_TRY(all.check_closed());
  *out = Value::dict();
  out->set("type", "object");
  if (all.properties.size()) out->set("properties", all.properties);
  if (all.required.size()) out->set("required", all.required);
  if (!all.closed.empty()) out->set("additionalProperties", false);
  return {};
}

}  // namespace greta
