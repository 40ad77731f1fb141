// Calls of tools as models write them: as JSON, with tags, or as a name with JSON behind it.
#pragma once
#include <functional>
#include <optional>
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
  // Reads an array of {"type": "function", "function": {"name", "description", "parameters"}}. An entry may
  // be the function alone.
  Status parse(std::string_view json);
  bool empty() const { return tools_.size() == 0; }
  const jinja::Value& value() const { return tools_; }  // undefined if there are none
  bool has(std::string_view name) const { return function(name) != nullptr; }
  bool may_begin(std::string_view text) const;  // a tool's name begins with this
  // Reads the text of an argument as the schema of the tool's parameter allows.
  jinja::Value read(std::string_view tool, std::string_view parameter, std::string_view text) const;

 private:
  const jinja::Value* function(std::string_view name) const;
  jinja::Value tools_;
};

constexpr size_t kMaxToolsBytes = 4u << 20;  // of the JSON of a conversation's tools
constexpr size_t kMaxCallBytes = 1u << 20;
constexpr size_t kMaxCallsInBody = 64;

// How calls are written, where the marks do not tell.
struct CallStyle {
  // A line end stands at both sides of a value between tags, and is no part of it. If nobody knows, the tags
  // decide.
  std::optional<bool> value_lines;
  bool id_behind = false;  // The id of a call stands behind its arguments.
};

// Finds out how a chat template writes calls. `render` has it write a conversation, with these messages and
// tools, and returns false if it refuses.
using RenderConversation =
    std::function<bool(const jinja::Value& messages, const jinja::Value& tools, std::string* out)>;
CallStyle find_call_style(const RenderConversation& render);

enum class CallsRead : uint8_t {
  None,
  Unfinished,  // no calls yet, but more text may make them so
  Calls,
};

// Appends the calls that `body` consists of. If it is anything else, it appends nothing.
CallsRead read_calls(std::string_view body, const ToolList& tools, const CallStyle& style,
                     std::vector<ChatCall>* out);

// Appends a call whose name is known from elsewhere and whose arguments are `json`.
bool parse_call(std::string_view name, std::string_view json, std::vector<ChatCall>* out);

// The length, by brackets alone, of the object or array that `text` begins with; 0 if it does not end.
size_t json_extent(std::string_view text);

// Reads what stands before the JSON of a call's arguments where that is no JSON itself: marks or a tag, the
// name, and in some families an id. Returns false if `text` is anything else.
bool read_call_head(std::string_view text, std::string_view* name, std::string_view* id);

// Returns true if the text may be a control token within calls.
bool is_call_mark(std::string_view text);

// The part of read_calls for calls that are written like those of a programming language.
CallsRead read_written_calls(std::string_view body, std::vector<ChatCall>* out);

// Reads a value as Python or JSON writes it. Returns false if `text` is anything else.
bool parse_written_value(std::string_view text, jinja::Value* out);

}  // namespace greta
