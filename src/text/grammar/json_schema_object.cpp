// Rules for objects: what names properties may have, how many come, and which want others.
#include <algorithm>
#include <optional>

#include "text/grammar/json_schema.h"
#include "text/grammar/json_schema_parts.h"

namespace greta {

using jinja::Value;

Status json_names(const Value& schema, SchemaReading* reading, JsonNames* out) {
  for (const Value::Entry& each : schema["patternProperties"].entries()) {
    TextSet set;
    const Status status = TextSet::matching(each.key.as_string(), &set);
    if (status.code == Code::Unsupported && !reading->strict) {
      GRETA_TRY(reading->miss("patternProperties", each.key.as_string()));
      continue;
    }
    GRETA_TRY(status);
    out->patterns.push_back(std::move(set));
    out->schemas.push_back(each.value);
  }
  const Value* names = schema.find("propertyNames");
  if (!names || !names->is_dict()) return {};
  Value merged;
  bool nothing = false;
  GRETA_TRY(merge_schemas(reading, {names, 1}, 1, &merged, &nothing));
  out->any = false;
  if (nothing) return {};
  if (merged.find("enum")) {
    std::vector<Value> values;
    std::vector<std::string_view> texts;
    GRETA_TRY(json_choices(merged, reading, &values));
    for (const Value& each : values)
      if (each.is_string()) texts.push_back(each.as_string());
    return TextSet::among(texts, &out->set);
  }
  for (const char* word : {"anyOf", "oneOf"})
    if (merged.find(word)) GRETA_TRY(reading->miss("propertyNames", word));
  GRETA_TRY(json_texts(merged, reading, &out->any, &out->set));
  if (!out->any || !(merged.find("minLength") || merged.find("maxLength"))) return {};
  out->any = false;
  return TextSet::all().limit(json_length(merged, "minLength", 0),
                              json_length(merged, "maxLength", TextSet::kNoLimit), &out->set);
}

Value json_with_patterns(const Value& schema, const JsonNames& names, std::string_view name) {
  std::vector<Value> all{schema};
  for (size_t i = 0; i < names.patterns.size(); ++i)
    if (names.patterns[i].has(name)) all.push_back(names.schemas[i]);
  if (all.size() == 1) return schema;
  Value both = Value::dict();
  both.set("allOf", Value::list(std::move(all)));
  return both;
}

// For each property, the last one first: a rule for what follows from there on, by the number of properties
// that came before. From `counted` on they are not told apart.
bool json_pairs_rule(std::span<const JsonProperty> list, const std::string& other, uint32_t least,
                     uint32_t most, const AddRule& add_rule, std::string* out) {
  constexpr uint32_t kMostCounted = 64;
  const auto required = uint32_t(std::ranges::count_if(list, &JsonProperty::required));
  const uint32_t listed = uint32_t(list.size()), need = least > required ? least : 0;
  const bool count_most = most < listed;  // else the others are what `most` leaves
  if (most < required || need > kMostCounted || (count_most && most > kMostCounted)) return false;
  const uint32_t counted = std::max({1u, need, count_most ? most : 0});
  using Rule = std::optional<std::string>;  // "": nothing follows; none: this place cannot be
  const auto comma = [](uint32_t have) { return std::string(have ? "\",\" ws " : ""); };
  std::vector<Rule> from(counted + 1);
  for (uint32_t have = 0; have <= counted; ++have) {
    const bool enough = have >= need;
    const uint32_t room = most == ~0u ? ~0u : count_most ? 0 : most - listed;
    if (enough) from[have] = "";
    if (other.empty() || room == 0 || have + 1 < need) continue;
    const std::string many = room == ~0u ? "*" : "{0," + std::to_string(room - 1) + "}";
    const std::string pairs = comma(have) + other + " (\",\" ws " + other + ")" + many;
    from[have] = add_rule(enough ? "(" + pairs + ")?" : pairs);
  }
  for (size_t i = list.size(); i-- > 0;) {
    const std::string pair = add_rule(list[i].pair);
    std::vector<Rule> here(counted + 1);
    for (uint32_t have = 0; have <= counted; ++have) {
      const Rule& with = from[std::min(have + 1, counted)];
      const bool may = with && !(count_most && have >= most);
      const Rule without = list[i].required ? Rule() : from[have];
      const std::string take = may ? comma(have) + pair + " " + *with : "";
      if (may && without)
        here[have] = add_rule(without->empty() ? "(" + take + ")?" : take + " | " + *without);
      else if (may)
        here[have] = add_rule(take);
      else
        here[have] = without;
    }
    from = std::move(here);
  }
  if (!from[0]) return false;
  *out = *from[0];
  return true;
}

Value json_dependencies(const Value& dependencies) {
  constexpr size_t kMostTold = 3;  // of the properties beyond, none comes
  std::vector<Value> ways{Value::dict()};
  size_t told = 0;
  const auto both = [](const Value& a, const Value& b) {
    Value all = Value::dict();
    all.set("allOf", Value::list({a, b}));
    return all;
  };
  for (const Value::Entry& each : dependencies.entries()) {
    Value absent = Value::dict(), properties = Value::dict(), present = Value::dict();
    properties.set(each.key, Value(false));
    absent.set("properties", properties);
    std::vector<Value> names{each.key};
    if (each.value.is_string()) names.push_back(each.value);
    names.insert(names.end(), each.value.items().begin(), each.value.items().end());
    present.set("required", Value::list(std::move(names)));
    const bool is_schema = each.value.is_dict() || each.value.is_bool();
    std::vector<Value> next;
    for (const Value& way : ways) {
      if (told < kMostTold) next.push_back(both(way, is_schema ? both(present, each.value) : present));
      next.push_back(both(way, absent));
    }
    ways = std::move(next);
    ++told;
  }
  return Value::list(std::move(ways));
}

}  // namespace greta
