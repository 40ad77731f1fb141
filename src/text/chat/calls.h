// Calls of tools, as models write them: JSON, tags, or a name with JSON behind it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/jinja.h"

namespace greta {

struct ChatCall {
  std::string id;  // "" if the model gave none
  std::string name;
  std::string arguments;  // a JSON object
};

// The tools that a model may call: JSON schemas in OpenAI's form.
class ToolList {
 public:
  // An array of {"type": "function", "function": {"name", "description", "parameters"}}; the function
  // alone will do for an entry.
  Status parse(std::string_view json);
  bool empty() const { return tools_.size() == 0; }
  const jinja::Value& value() const { return tools_; }  // undefined if there are none
  bool has(std::string_view name) const { return function(name) != nullptr; }
  // "string", "integer", ...; "" if the schema does not say.
  std::string_view parameter_type(std::string_view tool, std::string_view parameter) const;

 private:
  const jinja::Value* function(std::string_view name) const;
  jinja::Value tools_;
};

constexpr size_t kMaxCallBytes = 1u << 20;
constexpr size_t kMaxCallsInBody = 64;

// Appends the calls that `body` consists of. False, and nothing is appended, if it is anything else.
bool parse_calls(std::string_view body, const ToolList& tools, std::vector<ChatCall>* out);

// One call whose name is known from elsewhere and whose arguments are `json`.
bool parse_call(std::string_view name, std::string_view json, std::vector<ChatCall>* out);

// Bytes of the object or array that `text` begins with, found by its brackets alone. 0 if it does not end.
size_t json_extent(std::string_view text);

// Texts within calls that may be control tokens.
bool is_call_mark(std::string_view text);

// Of parse_calls: calls written like those of a programming language.
bool parse_written_calls(std::string_view body, std::vector<ChatCall>* out);

}  // namespace greta
