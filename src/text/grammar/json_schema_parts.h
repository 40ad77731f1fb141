// Parts of the conversion of schemas: checks of keywords, references, schemas that must all hold, and
// grammars of texts, keys, numbers and patterns.
#pragma once
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/json_schema_texts.h"
#include "text/jinja/jinja.h"

namespace greta {

// What the parts of one conversion share.
struct SchemaReading {
  const jinja::Value& root;
  bool strict = false;                              // what cannot be held is an error
  uint32_t parts = 0;                               // schemas visited so far, up to kMaxSchemaParts
  std::set<std::string> unknown = {}, missed = {};  // words that say nothing, and what is not held

  // Tells that `word` is not held for this reason.
  Status miss(std::string_view word, std::string_view reason);
  // Marks an error as one that says that no value meets a schema. Where such a value need not come,
  // unless_nothing makes it no error, and sets *none.
  Status nothing(Status error) { return is_nothing_ = true, error; }
  Status unless_nothing(Status status, bool* none) {
    if (!status.ok() && is_nothing_) return is_nothing_ = false, *none = true, Status{};
    return status;
  }
  std::string note() const;  // in a sentence, "" if there is nothing to tell

  bool is_nothing_ = false;  // the last error was marked
};

// ---- checks, whose errors say the place as a JSON pointer ----
Status check_schema(const jinja::Value& root);  // checks what keywords hold, in all schemas within it
// Checks this schema alone, and tells of keywords that are not held. `path` is where it is.
Status check_schema_keywords(const jinja::Value& schema, const std::string& path, SchemaReading* reading);
bool is_schema_note(std::string_view keyword);  // returns true if it restricts nothing that is generated

// ---- values ----
bool json_whole(const jinja::Value& value, int64_t* out);  // false unless it is a whole number within 64 bits
bool json_equal(const jinja::Value& a, const jinja::Value& b);  // as JSON has it: 1 is 1.0, true is not 1
// Returns true if a value has the type, or one of the types, that `type` names. Undefined names all.
bool json_fits_type(const jinja::Value& value, const jinja::Value& type);
// Appends the values that `enum` and `const` allow, and what else the schema says of numbers and texts.
Status json_choices(const jinja::Value& schema, SchemaReading* reading, std::vector<jinja::Value>* out);

// ---- schemas ----
// Finds what a $ref points to.
Status find_reference(const jinja::Value& root, std::string_view pointer, const jinja::Value** out);
// Makes one schema of several that must all hold. If no value fits all, it sets only `*nothing`.
Status merge_schemas(SchemaReading* reading, std::span<const jinja::Value> schemas, uint32_t depth,
                     jinja::Value* out, bool* nothing);
jinja::Value schema_without(const jinja::Value& schema, std::string_view keyword);  // leaves out notes, too

// The type that is generated for a schema that names none: the one that its keywords are about.
std::string_view json_implied_type(const jinja::Value& schema);
// Narrows the schemas of a oneOf beside the keywords `rest`, so that what is generated for one meets none of
// the others. Where that cannot be told, oneOf is not held.
Status json_one_of(SchemaReading* reading, const jinja::Value& rest, const jinja::Value& list,
                   const std::string& path, jinja::Value* out);
// The schemas for the first items of a list, one for each place, and the schema for the rest. `rest` is null
// if the schema does not restrict it.
struct JsonTuple {
  std::span<const jinja::Value> first;
  const jinja::Value* rest = nullptr;
  std::string first_path, rest_path;
};
Status json_tuple(const jinja::Value& schema, const std::string& path, JsonTuple* out);

// ---- grammars ----
std::string gbnf_literal(std::string_view text);
// GBNF for one of these texts. What they begin with is written once, so that few states are open at a time.
std::string gbnf_literals(std::vector<std::string> texts);
using AddRule = std::function<std::string(const std::string& body)>;  // returns the rule's name

// GBNF for a key in quotes that is none of these. It allows no escapes, so none can come in another spelling.
Status json_other_key(const std::set<std::string_view>& names, const AddRule& add_rule, std::string* out);

// GBNF for a number of the type "integer" or "number" within the schema's minimum and maximum.
Status json_number_rule(const jinja::Value& schema, std::string_view type, SchemaReading* reading,
                        std::string* out);

// The texts that the schema's pattern, format and lengths allow; *any is true if it has only lengths, or
// none.
Status json_texts(const jinja::Value& schema, SchemaReading* reading, bool* any, TextSet* out);
// The bounds of an OpenAPI format of whole numbers, such as int32; undefined if it names none.
jinja::Value json_format_bounds(std::string_view format);

// Reads minLength or maxLength, which is `otherwise` if it is absent.
uint32_t json_length(const jinja::Value& schema, const char* word, uint32_t otherwise);

// What propertyNames and patternProperties say of the names of an object.
struct JsonNames {
  bool any = true;  // every text is a name
  TextSet set = {};
  std::vector<TextSet> patterns = {};
  std::vector<jinja::Value> schemas = {};  // of each pattern
};
Status json_names(const jinja::Value& schema, SchemaReading* reading, JsonNames* out);
// The schema of a listed property together with those of the patterns that its name matches.
jinja::Value json_with_patterns(const jinja::Value& schema, const JsonNames& names, std::string_view name);

struct JsonProperty {
  std::string pair;  // its rule
  bool required;
};
// GBNF for what is between the braces of an object of `least` to `most` properties (~0u: any number), of
// which those in the list come in their order and `other` ("": none) behind them. False if that cannot be
// said: other properties count as one towards `least`, since their names may be the same.
bool json_pairs_rule(std::span<const JsonProperty> list, const std::string& other, uint32_t least,
                     uint32_t most, const AddRule& add_rule, std::string* out);
// A list of schemas of which one holds where the dependencies do: in each, a property is not there, or what
// it wants is.
jinja::Value json_dependencies(const jinja::Value& dependencies);

// GBNF for what is between the brackets of a list of `least` to `most` of these values, each at most once.
Status json_unique_rule(std::span<const jinja::Value> values, uint32_t least, uint32_t most,
                        const AddRule& add_rule, std::string* out);

}  // namespace greta
