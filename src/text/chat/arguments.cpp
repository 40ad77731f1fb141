#include "text/chat/arguments.h"

#include <algorithm>

#include "text/chat/calls.h"
#include "text/chat/text.h"
#include "text/grammar/json_schema_parts.h"

namespace greta {

using jinja::Value;

namespace {

constexpr uint32_t kMaxSchemaDepth = 32;
constexpr uint32_t kMaxSchemaSteps = 10'000;  // references may branch without end

// What a reference points to; null if it leads nowhere.
const Value* resolve(const Value& reference, const Value& root) {
  const Value* found = nullptr;
  return find_reference(root, reference.as_string(), &found).ok() ? found : nullptr;
}

// Looks at what distinguishes types and alternatives. Other words of a schema are taken as fulfilled.
class SchemaCheck {
 public:
  explicit SchemaCheck(const Value& root) : root_(root) {}

  bool admits(const Value& schema, const Value& value, uint32_t depth = 0) {
    if (schema.is_bool()) return schema.as_bool();
    if (!schema.is_dict() || depth > kMaxSchemaDepth || ++steps_ > kMaxSchemaSteps) return true;
    if (const Value* fixed = schema.find("const"); fixed && !json_equal(*fixed, value)) return false;
    if (const Value* list = schema.find("enum");
        list && !any(list->items(), [&](const Value& item) { return json_equal(item, value); }))
      return false;
    if (const Value* target = schema.find("$ref"))
      if (const Value* found = resolve(*target, root_); found && !admits(*found, value, depth + 1))
        return false;
    const auto admitted = [&](const Value& part) { return admits(part, value, depth + 1); };
    for (const char* choice : {"anyOf", "oneOf"})
      if (const Value* list = schema.find(choice); list && !any(list->items(), admitted)) return false;
    for (const Value& part : schema["allOf"].items())
      if (!admitted(part)) return false;
    return has_type(schema, value) && admits_parts(schema, value, depth);
  }

 private:
  template <class Test>
  static bool any(std::span<const Value> items, const Test& test) {
    return std::any_of(items.begin(), items.end(), test);
  }

  static bool has_type(const Value& schema, const Value& value) {
    if (value.is_none() && schema["nullable"].as_bool()) return true;
    return json_fits_type(value, schema["type"]);
  }

  bool admits_parts(const Value& schema, const Value& value, uint32_t depth) {
    const Value* items = value.is_list() ? schema.find("items") : nullptr;
    for (const Value& item : value.items())
      if (items && !admits(*items, item, depth + 1)) return false;
    if (!value.is_dict()) return true;
    for (const Value& key : schema["required"].items())
      if (!value.find(key.as_string())) return false;
    const Value &known = schema["properties"], &others = schema["additionalProperties"];
    for (const Value::Entry& entry : value.entries()) {
      const Value* property = known.find(entry.key.as_string());
      if (!property && !schema.find("patternProperties")) property = &others;
      if (property && !admits(*property, entry.value, depth + 1)) return false;
    }
    return true;
  }

  const Value& root_;
  uint32_t steps_ = 0;
};

// Returns true if the schema excludes some type, so that what it allows was meant.
bool names_types(const Value& schema, const Value& root) {
  for (const Value& value : {Value(nullptr), Value(true), Value(1), Value::list(), Value::dict()})
    if (!SchemaCheck(root).admits(schema, value)) return true;
  return false;
}

const Value* property_within(const Value& object, std::string_view key, const Value& root, uint32_t depth) {
  if (depth > 8) return nullptr;
  if (const Value* found = object["properties"].find(key)) return found;
  if (const Value* target = object.find("$ref"))
    if (const Value* other = resolve(*target, root))
      if (const Value* found = property_within(*other, key, root, depth + 1)) return found;
  for (const char* list : {"allOf", "anyOf", "oneOf"})
    for (const Value& part : object[list].items())
      if (const Value* found = property_within(part, key, root, depth + 1)) return found;
  return object["additionalProperties"].is_dict() ? &object["additionalProperties"] : nullptr;
}

}  // namespace

const Value* property_schema(const Value& object, std::string_view key, const Value& root) {
  return property_within(object, key, root, 0);
}

Value read_argument(std::string_view text, const Value* given, const Value& root) {
  const Value anything = true, &schema = given ? *given : anything;
  const auto admits = [&](const Value& value) { return SchemaCheck(root).admits(schema, value); };
  const std::string_view solid = trim_blanks(text);
  const bool may_be_text = admits(Value(text));
  Value value;
  bool read = parse_json(solid, &value).ok();
  if (!read && (!may_be_text || names_types(schema, root))) read = parse_written_value(solid, &value);
  const bool quoted = read && value.is_string();
  // 1.50 and 007 are texts where texts are allowed.
  const bool exact = !value.is_number() || to_json(value) == text;
  if (read && !quoted && admits(value) && (exact || !may_be_text)) return value;
  if (may_be_text) return text;
  // A text with quotes or line ends around it may be what the schema lists.
  if (quoted && admits(value)) return value;
  if (admits(Value(solid))) return solid;
  return read ? value : Value(text);
}

}  // namespace greta
