// The arguments of calls that are written as texts: a schema tells what a text stands for.
#pragma once
#include <string_view>

#include "text/jinja/jinja.h"

namespace greta {

// Reads the text of one argument as `schema`, a part of the document `root`, allows. A text that may stand
// for a number, a boolean, null, a list or an object is one if the schema allows that; it is a text if the
// schema allows nothing else. Where it allows both, a number counts only if it is written as JSON writes it.
// Python's values (True, None, {'k': 1}) count where the schema names their type. A null `schema` allows
// everything.
jinja::Value read_argument(std::string_view text, const jinja::Value* schema, const jinja::Value& root);

// The schema of a property within that of an object; null if there is none.
const jinja::Value* property_schema(const jinja::Value& object, std::string_view key,
                                    const jinja::Value& root);

}  // namespace greta
