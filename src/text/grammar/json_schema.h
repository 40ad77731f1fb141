// Turns JSON schemas into GBNF.
#pragma once
#include <string>
#include <string_view>

#include "text/grammar/grammar.h"

namespace greta {

constexpr uint32_t kMaxSchemaDepth = 64;     // of schemas within schemas, and of references
constexpr uint32_t kMaxSchemaParts = 20000;  // how many schemas are visited

struct SchemaOptions {
  bool strict = false;  // a keyword that cannot be held is an error, and else a note
  Log log = {};         // gets the note: what is not held, and words that say nothing
};

// docs/sampling.md lists the keywords. If a schema leaves open what may stand beside what it names (more
// properties, more items, other types), nothing more is generated.
Status json_schema_grammar(std::string_view schema, const SchemaOptions& options, std::string* gbnf);
Status parse_json_schema(std::string_view schema, const SchemaOptions& options,
                         std::shared_ptr<const Grammar>* out);

}  // namespace greta
