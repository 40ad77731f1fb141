// Turns JSON schemas into GBNF. A keyword that cannot be enforced is refused by its name.
#pragma once
#include <string>
#include <string_view>

#include "platform/platform.h"

namespace greta {

constexpr uint32_t kMaxSchemaDepth = 64;     // of schemas within schemas, and of references
constexpr uint32_t kMaxSchemaParts = 20000;  // how many schemas are visited

// docs/sampling.md lists the keywords. If a schema leaves open what may stand beside what it names (more
// properties, more items, other types), nothing more is generated.
Status json_schema_grammar(std::string_view schema, std::string* gbnf);

}  // namespace greta
