// oneOf: exactly one of several schemas holds. A grammar cannot count, so each schema is narrowed until what
// is generated for it meets none of the others.
#include <algorithm>

#include "text/grammar/json_schema.h"
#include "text/grammar/json_schema_parts.h"

namespace greta {

using jinja::Value;

namespace {

Value with(const char* word, Value value) {
  Value schema = Value::dict();
  schema.set(word, std::move(value));
  return schema;
}

bool allows_nothing(const Value& schema) { return schema.is_bool() && !schema.as_bool(); }

bool is_listed(const Value& list, std::string_view text) {
  return std::ranges::any_of(list.items(), [&](const Value& each) { return each.as_string() == text; });
}

// Compares schemas. It has a reading of its own: what it cannot merge is told by nobody, and its work is
// bounded by the number of parts that are visited.
class Comparison {
 public:
  explicit Comparison(const Value& root) : reading_{root} {}

  // One schema of all of these. False if it is not known. If no value meets it, it sets *nothing alone.
  bool merge(std::initializer_list<Value> schemas, Value* out, bool* nothing) {
    return merge_schemas(&reading_, {schemas.begin(), schemas.size()}, 1, out, nothing).ok();
  }
  // The same with the type that is generated. False also if no value meets it.
  bool merge_made(std::initializer_list<Value> schemas, Value* out) {
    bool nothing = false;
    if (!merge(schemas, out, &nothing) || nothing) return false;
    const std::string_view type = json_implied_type(*out);
    if (!out->find("type") && !out->find("enum") && !type.empty()) out->set("type", type);
    return true;
  }

  // True if no value that is generated for `made` meets `other`. They come from merge_made and merge.
  bool are_apart(const Value& made, const Value& other, uint32_t depth = 0) {
    constexpr uint32_t kMostDepth = 3;
    if (depth > kMostDepth) return false;
    if (differ_quickly(made, other)) return true;
    Value both;
    bool nothing = false;
    if (!merge({made, other}, &both, &nothing) || nothing) return nothing;
    std::vector<Value> values;
    if (both.find("enum")) return finds_nothing(json_choices(both, &reading_, &values));
    const std::string_view type = both["type"].as_string();  // "" if there are several
    if (type == "object") return objects_apart(made, other, depth);
    if (type == "array") return arrays_apart(made, other, both, depth);
    if (type == "string") return texts_apart(made, other);
    std::string rule;
    return (type == "integer" || type == "number") &&
           finds_nothing(json_number_rule(both, type, &reading_, &rule));
  }

  // True if every value of `made` meets `other`, since that one says nothing more.
  bool is_within(const Value& made, const Value& other) {
    Value both;
    bool nothing = false;
    reading_.missed.clear();
    return merge({made, other}, &both, &nothing) && reading_.missed.empty() && json_equal(both, made);
  }

  // Makes `made` narrower, so that it is apart from `other`: a property that the other one requires does not
  // come, or an array is not empty. False if neither helps.
  bool part(Value* made, const Value& other) {
    const Value before = *made;
    if ((*made)["type"].as_string() == "array") {
      return merge_made({before, with("minItems", int64_t(1))}, made) && are_apart(*made, other);
    }
    if ((*made)["type"].as_string() != "object") return false;
    const Value* found = nullptr;
    for (const Value& name : other["required"].items()) {
      if (is_listed(before["required"], name.as_string())) continue;
      if (!found || !before["properties"].find(name.as_string())) found = &name;
    }
    if (!found) return false;
    Value none = Value::dict();
    none.set(*found, Value(false));
    return merge_made({before, with("properties", std::move(none))}, made);
  }

 private:
  bool finds_nothing(Status status) {
    bool nothing = false;
    (void)reading_.unless_nothing(status, &nothing);
    return nothing;
  }

  // A property with one value or a few, by which most schemas tell objects apart.
  static bool differ_quickly(const Value& a, const Value& b) {
    for (const Value& name : a["required"].items()) {
      const Value *mine = a["properties"].find(name.as_string()),
                  *theirs = b["properties"].find(name.as_string());
      if (!mine || !theirs || (*mine)["const"].is_undefined() || (*theirs)["const"].is_undefined()) continue;
      const bool types = a["type"].as_string() == "object" && b["type"].as_string() == "object";
      if (types && !json_equal((*mine)["const"], (*theirs)["const"])) return true;
    }
    return false;
  }

  // Whether a property of this name may come in what is generated.
  static bool may_come(const Value& made, std::string_view name) {
    if (const Value* property = made["properties"].find(name)) return !allows_nothing(*property);
    for (const char* word : {"anyOf", "oneOf", "dependencies", "dependentRequired", "dependentSchemas",
                             "patternProperties", "minProperties"})
      if (made.find(word)) return true;
    for (const char* word : {"additionalProperties", "unevaluatedProperties"})
      if (const Value* more = made.find(word)) return !allows_nothing(*more);
    return !made.find("properties") || is_listed(made["required"], name);
  }

  bool objects_apart(const Value& made, const Value& other, uint32_t depth) {
    for (const Value& name : other["required"].items())
      if (!may_come(made, name.as_string())) return true;
    for (const Value::Entry& each : made["properties"].entries()) {
      const std::string_view name = each.key.as_string();
      const Value* theirs = other["properties"].find(name);
      if (!theirs || !(is_listed(made["required"], name) || is_listed(other["required"], name))) continue;
      if (values_apart(each.value, *theirs, depth)) return true;
    }
    return false;
  }

  bool values_apart(const Value& made, const Value& other, uint32_t depth) {
    if (allows_nothing(made) || allows_nothing(other)) return true;
    Value mine, theirs;
    bool nothing = false;
    if (!merge({other}, &theirs, &nothing) || nothing) return nothing;
    return merge_made({made}, &mine) && are_apart(mine, theirs, depth + 1);
  }

  bool arrays_apart(const Value& made, const Value& other, const Value& both, uint32_t depth) {
    const Value *least = both.find("minItems"), *most = both.find("maxItems");
    if (least && most && least->as_double() > most->as_double()) return true;
    const Value &mine = made["items"], &theirs = other["items"];
    if (!(made["minItems"].as_double() >= 1) || made.find("prefixItems") || other.find("prefixItems"))
      return false;
    return mine.is_dict() && theirs.is_dict() && values_apart(mine, theirs, depth);
  }

  bool texts_apart(const Value& made, const Value& other) {
    constexpr uint32_t kMostParts = 500;  // an automaton takes as long as many merges
    TextSet sets[2], common;
    for (const Value* schema : {&made, &other}) {
      bool any = true;
      TextSet& set = sets[schema == &other];
      reading_.parts += kMostParts;
      if (reading_.parts > kMaxSchemaParts || !json_texts(*schema, &reading_, &any, &set).ok()) return false;
      const uint32_t least = json_length(*schema, "minLength", 0);
      const uint32_t most = json_length(*schema, "maxLength", TextSet::kNoLimit);
      if (any && !TextSet::all().limit(least, most, &set).ok()) return false;
    }
    return sets[0].intersect(sets[1], &common).ok() && common.empty();
  }

  SchemaReading reading_;
};

}  // namespace

Status json_one_of(SchemaReading* reading, const Value& rest, const Value& list, const std::string& path,
                   Value* out) {
  constexpr size_t kMost = 256;
  *out = list;
  if (list.size() == 1) return {};
  if (list.size() > kMost) return reading->miss("oneOf", "of more than 256 schemas");
  Comparison comparison(reading->root);
  const std::span<const Value> schemas = list.items();
  std::vector<Value> all(schemas.size()), narrowed;  // undefined where no value meets a schema
  bool holds = true;
  for (size_t i = 0; i < schemas.size() && holds; ++i) {
    bool nothing = false;
    holds = comparison.merge({rest, schemas[i]}, &all[i], &nothing);
    if (nothing) all[i] = {};
  }
  for (size_t i = 0; i < schemas.size() && holds; ++i) {
    Value made;
    bool is_narrowed = false;
    if (all[i].is_undefined()) continue;
    holds = comparison.merge_made({all[i]}, &made);
    bool may_be = true;  // false where what meets this schema meets another one, too
    for (size_t j = 0; j < schemas.size() && holds && may_be; ++j) {
      if (i == j || all[j].is_undefined() || comparison.are_apart(made, all[j])) continue;
      may_be = !comparison.is_within(made, all[j]);
      if (may_be) holds = is_narrowed = comparison.part(&made, all[j]);
    }
    if (may_be) narrowed.push_back(is_narrowed ? made : schemas[i]);
  }
  if (!holds) return reading->miss("oneOf", path);
  *out = Value::list(std::move(narrowed));
  return {};
}

}  // namespace greta
