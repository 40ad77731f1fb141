// Checks that the keywords of a schema hold what they may hold, and says where one holds something else.
#include <algorithm>
#include <vector>

#include "text/grammar/json_schema.h"
#include "text/grammar/json_schema_parts.h"
#include "text/unicode/unicode.h"

namespace greta {
namespace {

using jinja::Value;

enum class Holds : uint8_t {
  Anything,
  Text,
  Truth,
  Number,
  Bound,   // a number, or true or false, as draft 4 of JSON Schema has it
  Count,   // a whole number from 0 on
  Types,   // the name of a type, or a list of such
  Texts,   // a list
  Values,  // a list that is not empty
  Schema,
  Schemas,       // a list that is not empty
  SchemaList,    // a list, or one schema
  SchemaMap,     // an object of schemas
  TextsMap,      // an object of lists of strings
  Dependencies,  // an object of lists of strings and of schemas
};

struct Keyword {
  std::string_view name;
  Holds holds;
};
constexpr Keyword kKeywords[] = {
    {"$ref", Holds::Text},
    {"type", Holds::Types},
    {"enum", Holds::Values},
    {"const", Holds::Anything},
    {"anyOf", Holds::Schemas},
    {"oneOf", Holds::Schemas},
    {"allOf", Holds::Schemas},
    {"properties", Holds::SchemaMap},
    {"required", Holds::Texts},
    {"additionalProperties", Holds::Schema},
    {"items", Holds::SchemaList},
    {"prefixItems", Holds::Schemas},
    {"additionalItems", Holds::Schema},
    {"uniqueItems", Holds::Truth},
    {"minItems", Holds::Count},
    {"maxItems", Holds::Count},
    {"minLength", Holds::Count},
    {"maxLength", Holds::Count},
    {"format", Holds::Text},
    {"pattern", Holds::Text},
    {"minimum", Holds::Number},
    {"maximum", Holds::Number},
    {"exclusiveMinimum", Holds::Bound},
    {"exclusiveMaximum", Holds::Bound},
    {"multipleOf", Holds::Number},
    {"propertyNames", Holds::Schema},
    {"patternProperties", Holds::SchemaMap},
    {"minProperties", Holds::Count},
    {"maxProperties", Holds::Count},
    {"dependencies", Holds::Dependencies},
    {"dependentRequired", Holds::TextsMap},
    {"dependentSchemas", Holds::SchemaMap},
    {"unevaluatedProperties", Holds::Schema},
    {"unevaluatedItems", Holds::Schema},
};
// Keywords that only hold schemas for others to point to.
constexpr Keyword kStores[] = {{"$defs", Holds::SchemaMap}, {"definitions", Holds::SchemaMap}};

// Keywords that restrict texts and are not held.
constexpr std::string_view kMissed[] = {"not",           "if",          "then",        "else",
                                        "contains",      "minContains", "maxContains", "$dynamicRef",
                                        "$recursiveRef", "disallow",    "extends",     "divisibleBy"};

// Words that are known to say nothing about what a text may be.
constexpr std::string_view kNotes[] = {"$schema",
                                       "$id",
                                       "$comment",
                                       "$defs",
                                       "definitions",
                                       "title",
                                       "description",
                                       "default",
                                       "examples",
                                       "example",
                                       "deprecated",
                                       "readOnly",
                                       "writeOnly",
                                       "name",
                                       "strict",
                                       "$anchor",
                                       "id",
                                       "$vocabulary",
                                       "$dynamicAnchor",
                                       "nullable",
                                       "contentEncoding",
                                       "contentMediaType",
                                       "contentSchema"};

bool is_schema(const Value& value) { return value.is_dict() || value.is_bool(); }
bool all_schemas(const Value& list) {
  return std::all_of(list.items().begin(), list.items().end(), is_schema);
}

bool is_type(const Value& value) {
  constexpr std::string_view kTypes[] = {"object", "array", "string", "integer", "number", "boolean", "null"};
  return std::find(std::begin(kTypes), std::end(kTypes), value.as_string()) != std::end(kTypes);
}

// Returns null if the keyword may hold the value, else the words for what it may hold.
const char* expected(Holds holds, const Value& value) {
  const auto texts = [](const Value& list) {
    return list.is_list() && std::ranges::all_of(list.items(), [](const Value& v) { return v.is_string(); });
  };
  const auto each_is = [&](auto&& fits) {
    return value.is_dict() &&
           std::ranges::all_of(value.entries(), [&](const Value::Entry& e) { return fits(e.value); });
  };
  const auto unless = [](bool fits, const char* words) { return fits ? nullptr : words; };
  int64_t whole = 0;
  switch (holds) {
    case Holds::Anything:
      return nullptr;
    case Holds::Text:
      return unless(value.is_string(), "a string");
    case Holds::Truth:
      return unless(value.is_bool(), "true or false");
    case Holds::Number:
      return unless(value.is_number(), "a number");
    case Holds::Bound:
      return unless(value.is_number() || value.is_bool(), "a number");
    case Holds::Count:
      return unless(value.is_number() && value.as_double() >= 0 &&
                        (json_whole(value, &whole) || value.as_double() > 1e18),
                    "a whole number from 0 on");
    case Holds::Types:
      if (value.is_string()) return unless(is_type(value), "the name of a type");
      return unless(value.is_list() && value.size() > 0 &&
                        std::all_of(value.items().begin(), value.items().end(), is_type),
                    "the name of a type or a list of such");
    case Holds::Texts:
      return unless(texts(value), "a list of strings");
    case Holds::Values:
      return unless(value.is_list() && value.size() > 0, "a list of values, at least one");
    case Holds::Schema:
      return unless(is_schema(value), "a schema");
    case Holds::Schemas:
      return unless(value.is_list() && value.size() > 0 && all_schemas(value),
                    "a list of schemas, at least one");
    case Holds::SchemaList:
      return unless(is_schema(value) || (value.is_list() && all_schemas(value)),
                    "a schema or a list of schemas");
    case Holds::SchemaMap:
      return unless(each_is(is_schema), "an object of schemas");
    case Holds::TextsMap:
      return unless(each_is(texts), "an object of lists of strings");
    case Holds::Dependencies:
      return unless(each_is([&](const Value& v) { return is_schema(v) || v.is_string() || texts(v); }),
                    "an object of schemas and lists of strings");
  }
  return nullptr;
}

// A key as a part of a JSON pointer, which writes ~ and / as ~0 and ~1.
std::string pointer_part(std::string_view key) {
  std::string out = "/";
  for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

Status check_keyword(const Keyword& keyword, const Value& value, const std::string& path) {
  const char* const words = expected(keyword.holds, value);
  if (!words) return {};
  return fail(Code::Argument, "JSON schema: %s must be %s, not %.80s",
              Quoted(path + pointer_part(keyword.name)).c_str(), words, jinja::to_json(value).c_str());
}

}  // namespace

bool is_schema_note(std::string_view word) {
  return std::ranges::find(kKeywords, word, &Keyword::name) == std::end(kKeywords);
}

std::string_view json_implied_type(const Value& schema) {
  struct Implied {
    const char* type;
    std::string_view words[8];
  };
  constexpr Implied kImplied[] = {
      {"object",
       {"properties", "required", "additionalProperties", "patternProperties", "propertyNames",
        "minProperties", "maxProperties", "unevaluatedProperties"}},
      {"array",
       {"items", "prefixItems", "minItems", "maxItems", "uniqueItems", "additionalItems",
        "unevaluatedItems"}},
      {"string", {"minLength", "maxLength", "format", "pattern"}},
      {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
  };
  for (const Implied& each : kImplied)
    for (const std::string_view word : each.words)
      if (!word.empty() && schema.find(word)) return each.type;
  return "";
}

bool json_whole(const Value& value, int64_t* out) {
  const double real = value.as_double();
  if (value.is_int()) return *out = value.as_int(), true;
  // 2^63 itself does not fit.
  if (!value.is_float() || !(real >= -0x1p63 && real < 0x1p63) || real != double(int64_t(real))) return false;
  return *out = int64_t(real), true;
}

Status check_schema_keywords(const Value& schema, const std::string& path, SchemaReading* reading) {
  for (const Value::Entry& each : schema.entries()) {
    const std::string_view word = each.key.as_string();
    const auto* known = std::ranges::find(kKeywords, word, &Keyword::name);
    if (known != std::end(kKeywords))
      GRETA_TRY(check_keyword(*known, each.value, path));
    else if (std::ranges::find(kMissed, word) != std::end(kMissed))
      GRETA_TRY(reading->miss(word, path));
    else if (std::ranges::find(kNotes, word) == std::end(kNotes) && reading->unknown.size() < 20)
      reading->unknown.insert(Quoted(word.substr(0, 40)).c_str());
  }
  return {};
}

// A list takes the place of recursion, since a document may nest deeper than schemas may.
Status check_schema(const Value& root) {
  struct Place {
    const Value* schema;
    std::string path;
  };
  std::vector<Place> open = {{&root, "#"}};
  while (!open.empty()) {
    const Place at = std::move(open.back());
    open.pop_back();
    const auto look = [&](const Keyword& keyword) -> Status {
      const Value* value = at.schema->find(keyword.name);
      if (!value) return {};
      GRETA_TRY(check_keyword(keyword, *value, at.path));
      if (keyword.holds < Holds::Schema || keyword.holds == Holds::TextsMap) return {};
      const std::string path = at.path + pointer_part(keyword.name);
      if (value->is_dict() && keyword.holds != Holds::Schema && keyword.holds != Holds::SchemaList)
        for (const Value::Entry& each : value->entries()) {
          if (!is_schema(each.value)) continue;
          open.push_back({&each.value, path + pointer_part(each.key.as_string())});
        }
      else if (value->is_list())
        for (size_t i = 0; i < value->size(); ++i)
          open.push_back({&value->items()[i], path + "/" + std::to_string(i)});
      else
        open.push_back({value, path});
      return {};
    };
    for (const Keyword& keyword : kKeywords) GRETA_TRY(look(keyword));
    for (const Keyword& keyword : kStores) GRETA_TRY(look(keyword));
  }
  return {};
}

}  // namespace greta
