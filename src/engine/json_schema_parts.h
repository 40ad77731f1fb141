// Parts of a schema's grammar that depend on nothing else in it: texts, numbers, patterns.
#pragma once
#include <string>
#include <string_view>

#include "engine/jinja/jinja.h"

namespace greta {

std::string gbnf_literal(std::string_view text);

// A number of the type "integer" or "number", within the schema's minimum and maximum.
Status json_number_rule(const jinja::Value& schema, std::string_view type, std::string* out);

// What is between the quotes of a JSON string whose value matches a regular expression, each character in one
// spelling. `^...$` with classes, groups, alternation and repeats; all else is refused by name.
Status json_pattern_rule(std::string_view pattern, std::string* out);

// Schemas of which all must hold, as one: objects alone, whose properties and required names are united.
// `root` is the document that $ref points into; `parts` counts what was visited, up to kMaxSchemaParts.
Status merge_schemas(const jinja::Value& root, const jinja::Value& schema, uint32_t depth, uint32_t* parts,
                     jinja::Value* out);
// What a $ref points to, or null.
Status find_reference(const jinja::Value& root, std::string_view pointer, const jinja::Value** out);

bool is_schema_note(std::string_view keyword);  // says nothing about what a text may be

}  // namespace greta
