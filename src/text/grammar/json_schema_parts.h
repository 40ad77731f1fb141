// Parts of the conversion of schemas: checks of keywords, references, schemas that must all hold, and
// grammars of texts, keys, numbers and patterns.
#pragma once
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/jinja.h"

namespace greta {

// ---- checks, whose errors say the place as a JSON pointer ----
Status check_schema(const jinja::Value& root);  // checks what keywords hold, in all schemas within it
// Checks this schema alone, and that its keywords are known. `path` is where it is.
Status check_schema_keywords(const jinja::Value& schema, const std::string& path);
bool is_schema_note(std::string_view keyword);  // returns true if it does not restrict a text

// ---- values ----
bool json_whole(const jinja::Value& value, int64_t* out);  // false unless it is a whole number within 64 bits
bool json_equal(const jinja::Value& a, const jinja::Value& b);  // as JSON has it: 1 is 1.0, true is not 1
// Returns true if a value has the type, or one of the types, that `type` names. Undefined names all.
bool json_fits_type(const jinja::Value& value, const jinja::Value& type);
// Appends the values that `enum` and `const` allow, and the type and bounds of numbers and lengths that stand
// beside them. Other keywords beside them are refused.
Status json_choices(const jinja::Value& schema, std::vector<jinja::Value>* out);

// ---- schemas ----
// Finds what a $ref points to.
Status find_reference(const jinja::Value& root, std::string_view pointer, const jinja::Value** out);
// Makes one schema of several that must all hold. `root` is the document that $ref points into. `parts`
// counts the visited schemas, up to kMaxSchemaParts. If no value fits all, it sets only `*nothing`.
Status merge_schemas(const jinja::Value& root, std::span<const jinja::Value> schemas, uint32_t depth,
                     uint32_t* parts, jinja::Value* out, bool* nothing);
jinja::Value schema_without(const jinja::Value& schema, std::string_view keyword);  // leaves out notes, too

// ---- grammars ----
std::string gbnf_literal(std::string_view text);
using AddRule = std::function<std::string(const std::string& body)>;  // returns the rule's name

// GBNF for a key in quotes that is none of these. It allows no escapes, so none can come in another spelling.
Status json_other_key(const std::set<std::string_view>& names, const AddRule& add_rule, std::string* out);

// GBNF for a number of the type "integer" or "number" within the schema's minimum and maximum.
Status json_number_rule(const jinja::Value& schema, std::string_view type, std::string* out);

// GBNF for what is between the brackets of a list of `least` to `most` of these values, each at most once.
Status json_unique_rule(std::span<const jinja::Value> values, uint32_t least, uint32_t most,
                        const AddRule& add_rule, std::string* out);

// GBNF for what is between the quotes of a JSON string whose value matches a regular expression, each
// character in one spelling. The expression is `^...$` with classes, groups, alternation and repeats; all
// else is refused by name.
Status json_pattern_rule(std::string_view pattern, std::string* out);

}  // namespace greta
