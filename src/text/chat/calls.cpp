// Reads calls of tools. The first characters tell how a call is written.
#include "text/chat/calls.h"

#include <algorithm>

#include "text/chat/arguments.h"
#include "text/chat/text.h"

namespace greta {

using jinja::Value;
using namespace std::string_view_literals;

namespace {

const Value* first_of(const Value& object, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (const Value* value = object.find(key)) return value;
  return nullptr;
}

// Writes arguments as an object, whether they came as one or as a text that holds one.
bool arguments_json(const Value* arguments, std::string* out) {
  if (!arguments || arguments->is_none()) return *out = "{}", true;
  Value parsed = *arguments;
  if (parsed.is_string()) {
    if (trim_blanks(parsed.as_string()).empty()) return *out = "{}", true;
    if (!parse_json(arguments->as_string(), &parsed).ok()) return false;
  }
  if (!parsed.is_dict()) return false;
  *out = to_json(parsed);
  return true;
}

// ---- JSON -------------------------------------------------------------------------------------

bool call_of_object(const Value& object, ChatCall* call) {
  const Value* function = object.find("function");
  const Value& body = function && function->is_dict() ? *function : object;
  const Value* name = first_of(body, {"name", "tool_name"});
  if (!name && function && function->is_string()) name = function;
  if (!name || !is_name(name->as_string())) return false;
  if (!arguments_json(first_of(body, {"arguments", "parameters", "args"}), &call->arguments)) return false;
  const Value* id = first_of(object, {"id", "tool_call_id", "call_id"});
  if (id && id->is_string()) call->id = id->as_string();
  call->name = name->as_string();
  return true;
}

// Apertus has the name for a key: {"name": {"argument": 1}}.
bool call_of_key(const Value& object, const ToolList& tools, ChatCall* call) {
  if (object.size() != 1) return false;
  const Value::Entry& entry = object.entries()[0];
  if (!tools.has(entry.key.as_string()) || !arguments_json(&entry.value, &call->arguments)) return false;
  call->name = entry.key.as_string();
  return true;
}

// Reads objects, or arrays of them, one after another.
CallsRead read_json_calls(std::string_view body, const ToolList& tools, std::vector<ChatCall>* out) {
  while (!body.empty()) {
    const size_t bytes = json_extent(body);
    Value value;
    if (bytes == 0) return body[0] == '{' || body[0] == '[' ? CallsRead::Unfinished : CallsRead::None;
    if (!parse_json(body.substr(0, bytes), &value).ok()) return CallsRead::None;
    const std::span<const Value> items = value.is_list() ? value.items() : std::span<const Value>(&value, 1);
    for (const Value& item : items) {
      ChatCall call;
      if (out->size() == kMaxCallsInBody || !item.is_dict() ||
          (!call_of_object(item, &call) && !call_of_key(item, tools, &call)))
        return CallsRead::None;
      out->push_back(std::move(call));
    }
    body.remove_prefix(bytes);
    body.remove_prefix(std::min(body.size(), body.find_first_not_of(" \t\r\n,;")));
  }
  return CallsRead::Calls;
}

// ---- tags -------------------------------------------------------------------------------------

struct TagForm {
  std::string_view call_open, call_name_end, call_close;
  std::string_view open, name_end, close;  // of an argument
  bool value_lines;                        // if nobody knows better
};
constexpr TagForm kTagForms[] = {
    {"<function=", ">", "</function>", "<parameter=", ">", "</parameter>", true},
    {"<invoke name=\"", "\">", "</invoke>", "<parameter name=\"", "\">", "</parameter>", false},
    {"<atem:invoke name=\"", "\">", "</atem:invoke>", "<atem:parameter name=\"", "\">", "</atem:parameter>",
     false},
    {"<|DSML|invoke name=\"", "\">", "</|DSML|invoke>", "<|DSML|parameter name=\"", "\">",
     "</|DSML|parameter>", false},
    {"<｜DSML｜invoke name=\"", "\">", "</｜DSML｜invoke>", "<｜DSML｜parameter name=\"", "\">",
     "</｜DSML｜parameter>", false},
};

// The text without one line end at either side.
std::string_view between_lines(std::string_view text) {
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

// Takes a value off the front, and the tag behind it. A closing tag within a value closes nothing, so the
// first one counts that has behind it what may follow. Without one, returns false.
template <class MayFollow>
bool take_value(std::string_view* text, std::string_view close, const MayFollow& may_follow,
                std::string_view* value) {
  for (size_t at = text->find(close); at != text->npos; at = text->find(close, at + 1)) {
    std::string_view after = text->substr(at + close.size());
    skip_blanks(&after);
    if (!may_follow(after)) continue;
    *value = text->substr(0, at);
    *text = after;
    return true;
  }
  return false;
}

class TagReader {
 public:
  TagReader(const TagForm& form, const ToolList& tools, bool value_lines)
      : form_(form), tools_(tools), value_lines_(value_lines) {}

  CallsRead calls(std::string_view body, std::vector<ChatCall>* out) const {
    while (!body.empty()) {
      ChatCall one;
      if (out->size() == kMaxCallsInBody) return CallsRead::None;
      if (const CallsRead read = call(&body, &one); read != CallsRead::Calls) return read;
      out->push_back(std::move(one));
      skip_blanks(&body);
    }
    return CallsRead::Calls;
  }

 private:
  // Returns true if a call may end before this text.
  bool ends_call(std::string_view text) const {
    skip_blanks(&text);
    return text.empty() || text.starts_with(form_.call_open);
  }

  CallsRead call(std::string_view* body, ChatCall* out) const {
    std::string_view name;
    if (!take(body, form_.call_open) || !take_until(body, form_.call_name_end, &name)) return CallsRead::None;
    out->name = trim_blanks(name);
    if (!is_name(out->name)) return CallsRead::None;
    skip_blanks(body);
    return body->starts_with('{') ? json(body, out) : arguments(body, out);
  }

  CallsRead json(std::string_view* body, ChatCall* out) const {  // between tags
    Value value;
    const size_t bytes = json_extent(*body);
    if (bytes == 0) return CallsRead::Unfinished;
    if (!parse_json(body->substr(0, bytes), &value).ok() || !value.is_dict()) return CallsRead::None;
    body->remove_prefix(bytes);
    skip_blanks(body);
    if (!take(body, form_.call_close)) return CallsRead::None;
    out->arguments = to_json(value);
    return CallsRead::Calls;
  }

  CallsRead arguments(std::string_view* body, ChatCall* out) const {
    Value values = Value::dict();
    while (!take(body, form_.call_close)) {
      std::string_view key, text;
      if (!take(body, form_.open) || !take_until(body, form_.name_end, &key)) return CallsRead::None;
      const auto may_follow = [&](std::string_view after) {
        return after.starts_with(form_.open) || (take(&after, form_.call_close) && ends_call(after));
      };
      if (!take_value(body, form_.close, may_follow, &text)) return CallsRead::Unfinished;
      if (value_lines_) text = between_lines(text);
      // DeepSeek says with an attribute whether the value is a text: name="x" string="true">.
      if (const size_t quote = key.find("\" string=\""); quote != key.npos) {
        const bool plain = key.substr(quote + 10) == "true";
        Value value;
        values.set(key.substr(0, quote), !plain && parse_json(trim_blanks(text), &value).ok() ? value : text);
        continue;
      }
      key = trim_blanks(key);
      values.set(key, tools_.read(out->name, key, text));
    }
    out->arguments = to_json(values);
    return CallsRead::Calls;
  }

  const TagForm& form_;
  const ToolList& tools_;
  bool value_lines_;
};

CallsRead read_tagged(std::string_view body, const ToolList& tools, const CallStyle& style,
                      std::vector<ChatCall>* out) {
  for (const TagForm& form : kTagForms)
    if (body.starts_with(form.call_open))
      return TagReader(form, tools, style.value_lines.value_or(form.value_lines)).calls(body, out);
  return CallsRead::None;
}

// GLM writes the name, then <arg_key>k</arg_key><arg_value>v</arg_value> for each argument.
CallsRead read_key_value(std::string_view body, const ToolList& tools, std::vector<ChatCall>* out) {
  constexpr std::string_view kKey = "<arg_key>";
  const size_t keys = std::min(body.size(), body.find(kKey));
  ChatCall call;
  call.name = trim_blanks(body.substr(0, keys));
  body.remove_prefix(keys);
  if (!is_name(call.name)) return CallsRead::None;
  if (body.empty() && !tools.has(call.name)) return CallsRead::None;  // a mere word is no call
  Value arguments = Value::dict();
  while (!body.empty()) {
    std::string_view key, gap, value;
    if (!take(&body, kKey) || !take_until(&body, "</arg_key>", &key)) return CallsRead::None;
    if (!take_until(&body, "<arg_value>", &gap) || !trim_blanks(gap).empty()) return CallsRead::None;
    const auto may_follow = [&](std::string_view after) { return after.empty() || after.starts_with(kKey); };
    if (!take_value(&body, "</arg_value>", may_follow, &value)) return CallsRead::Unfinished;
    key = trim_blanks(key);
    arguments.set(key, tools.read(call.name, key, value));
  }
  call.arguments = to_json(arguments);
  out->push_back(std::move(call));
  return CallsRead::Calls;
}

// ---- a name, then JSON ------------------------------------------------------------------------

// The marks around a name and its arguments, as Mistral, DeepSeek, Kimi, Solar and Hunyuan write them.
constexpr std::string_view kSeparators[] = {
    "<tool_call>",
    "</tool_call>",
    "[TOOL_CALLS]",
    "[CALL_ID]",
    "[ARGS]",
    "```json",
    "```",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|tool_call:begin|>",
    "<|tool_call:name|>",
    "<|tool_call:args|>",
    "<|tool_call:end|>",
};

// The parts of `head` between separators and blanks.
std::vector<std::string_view> parts_of_head(std::string_view head) {
  std::vector<std::string_view> parts;
  size_t start = 0;
  const auto cut = [&](size_t at) {
    if (at > start) parts.push_back(head.substr(start, at - start));
  };
  for (size_t at = 0; at < head.size();) {
    size_t bytes = kBlanks.find(head[at]) != kBlanks.npos ? 1 : 0;
    for (const std::string_view separator : kSeparators)
      if (head.substr(at).starts_with(separator)) bytes = std::max(bytes, separator.size());
    if (bytes == 0) {
      ++at;
      continue;
    }
    cut(at);
    at += bytes;
    start = at;
  }
  cut(head.size());
  return parts;
}

// Reads a name, or a name and an id, between separators.
bool read_separated(std::string_view head, std::string_view* name, std::string_view* id) {
  if (head.size() > 1024) return false;
  std::vector<std::string_view> parts = parts_of_head(head);
  if (parts.size() > 1 && parts[0] == "function") parts.erase(parts.begin());  // DeepSeek's type
  if (parts.empty() || parts.size() > 2) return false;
  *name = parts[0];
  *id = parts.size() > 1 ? parts[1] : "";
  if (head.find("<|tool_call:name|>") != head.npos) std::swap(*name, *id);  // Solar writes the id first
  if (name->starts_with("functions.")) {  // Kimi: the id is functions.NAME:INDEX
    *id = *name;
    *name = name->substr(10, name->rfind(':') == name->npos ? name->npos : name->rfind(':') - 10);
  }
  return is_name(*name);
}

CallsRead read_headed(std::string_view body, std::vector<ChatCall>* out) {
  for (;;) {
    const size_t json = body.find('{');
    const std::string_view head = body.substr(0, json);
    if (json == body.npos) {
      const bool ended = !out->empty() && head.size() <= 1024 && parts_of_head(head).empty();
      return ended ? CallsRead::Calls : CallsRead::None;
    }
    std::string_view name, id;
    if (out->size() == kMaxCallsInBody || !read_separated(head, &name, &id)) return CallsRead::None;
    body.remove_prefix(json);
    const size_t bytes = json_extent(body);
    if (bytes == 0) return CallsRead::Unfinished;
    if (!parse_call(name, body.substr(0, bytes), out)) return CallsRead::None;
    out->back().id = id;
    body.remove_prefix(bytes);
  }
}

}  // namespace

// ---- the tools --------------------------------------------------------------------------------

Status ToolList::parse(std::string_view json) {
  if (json.size() > kMaxToolsBytes)
    return fail(Code::Argument, "tools: %zu bytes, expected at most %zu", json.size(), kMaxToolsBytes);
  Value given;
  GRETA_TRY(within(parse_json(json, &given), "tools"));
  if (!given.is_list()) return fail(Code::Argument, "tools: expected an array, not %s", given.type_name());
  Value tools = Value::list();
  for (size_t i = 0; i < given.size(); ++i) {
    const Value& tool = given.items()[i];
    const Value& function = tool["function"].is_dict() ? tool["function"] : tool;
    const std::string_view name = function["name"].as_string();
    if (name.empty()) return fail(Code::Argument, "tools: entry %zu has no function with a name", i);
    if (!is_name(name))
      return fail(Code::Argument,
                  "tools: entry %zu: the name %s must have at most 256 letters, digits and any of _ - . : /",
                  i, Quoted(name).c_str());
    if (&function != &tool) {
      tools.push(tool);
      continue;
    }
    Value wrapped = Value::dict();
    wrapped.set("type"sv, "function");
    wrapped.set("function"sv, tool);
    tools.push(std::move(wrapped));
  }
  tools_ = tools.size() ? std::move(tools) : Value();
  return {};
}

const Value* ToolList::function(std::string_view name) const {
  for (const Value& tool : tools_.items())
    if (tool["function"]["name"].as_string() == name)
      return tool["function"].find("name") ? &tool["function"] : nullptr;
  return nullptr;
}

bool ToolList::may_begin(std::string_view text) const {
  return std::ranges::any_of(tools_.items(), [&](const Value& tool) {
    return tool["function"]["name"].as_string().starts_with(text);
  });
}

Value ToolList::read(std::string_view tool, std::string_view parameter, std::string_view text) const {
  const Value* found = function(tool);
  const Value none = {}, &schema = found ? (*found)["parameters"] : none;
  return read_argument(text, property_schema(schema, parameter, schema), schema);
}

// ---- calls ------------------------------------------------------------------------------------

size_t json_extent(std::string_view text) {
  size_t depth = 0;
  bool quoted = false;
  if (text.empty() || (text[0] != '{' && text[0] != '[')) return 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return i + 1;
    }
  }
  return 0;
}

bool read_call_head(std::string_view text, std::string_view* name, std::string_view* id) {
  text = trim_blanks(text);
  for (const TagForm& form : kTagForms) {
    if (take(&text, form.call_close)) skip_blanks(&text);  // of the call before it
    if (!take(&text, form.call_open)) continue;
    if (!take_until(&text, form.call_name_end, name) || !trim_blanks(text).empty()) return false;
    *name = trim_blanks(*name);
    return is_name(*name);
  }
  return read_separated(text, name, id);
}

bool is_call_mark(std::string_view text) {
  return std::find(std::begin(kSeparators), std::end(kSeparators), text) != std::end(kSeparators) ||
         text == "<|\"|>";
}

bool parse_call(std::string_view name, std::string_view json, std::vector<ChatCall>* out) {
  Value value;
  json = trim_blanks(json);
  if (!is_name(name)) return false;
  if (json.empty()) json = "{}";
  if (!parse_json(json, &value).ok() || !value.is_dict()) return false;
  out->push_back({"", std::string(name), to_json(value)});
  return true;
}

CallsRead read_calls(std::string_view body, const ToolList& tools, const CallStyle& style,
                     std::vector<ChatCall>* out) {
  body = trim_blanks(body);
  if (body.empty() || body.size() > kMaxCallBytes) return CallsRead::None;
  std::vector<ChatCall> calls;
  CallsRead best = CallsRead::None;
  const auto attempt = [&](CallsRead read) {
    if (read == CallsRead::Calls && calls.empty()) read = CallsRead::None;
    if (read != CallsRead::Calls) calls.clear();
    best = std::max(best, read);
    return read == CallsRead::Calls;
  };
  const size_t first = body[0] == '[' ? body.find_first_of("{(") : 0;
  if (body[0] == '{' || (body[0] == '[' && first != body.npos && body[first] == '{'))
    attempt(read_json_calls(body, tools, &calls));
  else if (body[0] == '<')
    attempt(read_tagged(body, tools, style, &calls)) || attempt(read_headed(body, &calls));
  else
    attempt(read_written_calls(body, &calls)) || attempt(read_headed(body, &calls)) ||
        attempt(read_key_value(body, tools, &calls));
  out->insert(out->end(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
  return best;
}

}  // namespace greta
