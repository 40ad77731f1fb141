// Reads calls of tools. The first characters tell how a call is written.
#include "text/chat/calls.h"

#include <algorithm>

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

// Reads objects, or arrays of them, one after another.
bool parse_json_calls(std::string_view body, std::vector<ChatCall>* out) {
  while (!body.empty()) {
    const size_t bytes = json_extent(body);
    Value value;
    if (bytes == 0 || !parse_json(body.substr(0, bytes), &value).ok()) return false;
    const std::span<const Value> items = value.is_list() ? value.items() : std::span<const Value>(&value, 1);
    for (const Value& item : items) {
      ChatCall call;
      if (out->size() == kMaxCallsInBody || !item.is_dict() || !call_of_object(item, &call)) return false;
      out->push_back(std::move(call));
    }
    body.remove_prefix(bytes);
    body.remove_prefix(std::min(body.size(), body.find_first_not_of(" \t\r\n,;")));
  }
  return true;
}

// ---- tags -------------------------------------------------------------------------------------

// A value within tags is a text if the schema says so, else JSON if it reads as JSON.
Value tagged_value(std::string_view text, std::string_view type) {
  Value value;
  if (type == "string" || !parse_json(trim_blanks(text), &value).ok()) return text;
  // Without a schema a quoted text is a text with quotes.
  return value.is_string() && type.empty() ? Value(text) : value;
}

struct TagForm {
  std::string_view call_open, call_name_end, call_close;
  std::string_view open, name_end, close;  // of an argument
};
constexpr TagForm kTagForms[] = {
    {"<function=", ">", "</function>", "<parameter=", ">", "</parameter>"},
    {"<invoke name=\"", "\">", "</invoke>", "<parameter name=\"", "\">", "</parameter>"},
    {"<|DSML|invoke name=\"", "\">", "</|DSML|invoke>", "<|DSML|parameter name=\"", "\">",
     "</|DSML|parameter>"},
    {"<｜DSML｜invoke name=\"", "\">", "</｜DSML｜invoke>", "<｜DSML｜parameter name=\"", "\">",
     "</｜DSML｜parameter>"},
};

// The text without one line end at either side, which belongs to the tags.
std::string_view between_tags(std::string_view text) {
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

bool parse_tagged_call(const TagForm& form, std::string_view* body, const ToolList& tools, ChatCall* call) {
  std::string_view name, inside;
  if (!take(body, form.call_open) || !take_until(body, form.call_name_end, &name)) return false;
  call->name = trim_blanks(name);
  if (!is_name(call->name)) return false;
  // The last closing tag before the next call counts, since one within an argument closes nothing.
  const size_t next = body->find(form.call_open), close = body->substr(0, next).rfind(form.call_close);
  if (close == body->npos) return false;
  inside = trim_blanks(body->substr(0, close));
  body->remove_prefix(close + form.call_close.size());
  if (inside.starts_with('{')) {  // JSON between tags
    Value value;
    if (!parse_json(inside, &value).ok() || !value.is_dict()) return false;
    call->arguments = to_json(value);
    return true;
  }
  Value arguments = Value::dict();
  while (!inside.empty()) {
    std::string_view key, value;
    if (!take(&inside, form.open) || !take_until(&inside, form.name_end, &key)) return false;
    // DeepSeek says with an attribute whether the value is a text: name="x" string="true">.
    std::string_view type;
    if (const size_t quote = key.find("\" string=\""); quote != key.npos) {
      type = key.substr(quote + 10) == "true" ? "string" : "any";
      key = key.substr(0, quote);
    }
    if (!take_until(&inside, form.close, &value)) return false;
    key = trim_blanks(key);
    if (type.empty()) type = tools.parameter_type(call->name, key);
    arguments.set(key, tagged_value(between_tags(value), type));
    skip_blanks(&inside);
  }
  call->arguments = to_json(arguments);
  return true;
}

bool parse_tagged(std::string_view body, const ToolList& tools, std::vector<ChatCall>* out) {
  for (const TagForm& form : kTagForms) {
    if (!body.starts_with(form.call_open)) continue;
    while (!body.empty()) {
      ChatCall call;
      if (out->size() == kMaxCallsInBody || !parse_tagged_call(form, &body, tools, &call)) return false;
      out->push_back(std::move(call));
      skip_blanks(&body);
    }
    return true;
  }
  return false;
}

// GLM writes the name, then <arg_key>k</arg_key><arg_value>v</arg_value> for each argument.
bool parse_key_value(std::string_view body, const ToolList& tools, std::vector<ChatCall>* out) {
  const size_t keys = std::min(body.size(), body.find("<arg_key>"));
  ChatCall call;
  call.name = trim_blanks(body.substr(0, keys));
  body.remove_prefix(keys);
  if (!is_name(call.name)) return false;
  if (body.empty() && !tools.has(call.name)) return false;  // a mere word is no call
  Value arguments = Value::dict();
  while (!body.empty()) {
    std::string_view key, gap, value;
    if (!take(&body, "<arg_key>") || !take_until(&body, "</arg_key>", &key)) return false;
    if (!take_until(&body, "<arg_value>", &gap) || !trim_blanks(gap).empty()) return false;
    if (!take_until(&body, "</arg_value>", &value)) return false;
    key = trim_blanks(key);
    arguments.set(key, tagged_value(value, tools.parameter_type(call.name, key)));
    skip_blanks(&body);
  }
  call.arguments = to_json(arguments);
  out->push_back(std::move(call));
  return true;
}

// ---- a name, then JSON ------------------------------------------------------------------------

// The marks around a name and its arguments, as Mistral, DeepSeek and Kimi write them.
constexpr std::string_view kSeparators[] = {
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

bool parse_headed(std::string_view body, std::vector<ChatCall>* out) {
  for (;;) {
    const size_t json = body.find('{');
    const std::string_view head = body.substr(0, json);
    if (head.size() > 1024) return false;
    std::vector<std::string_view> parts = parts_of_head(head);
    if (json == body.npos) return parts.empty() && !out->empty();
    if (parts.size() > 1 && parts[0] == "function") parts.erase(parts.begin());  // DeepSeek's type
    if (parts.empty() || parts.size() > 2 || out->size() == kMaxCallsInBody) return false;
    std::string_view name = parts[0], id = parts.size() > 1 ? parts[1] : "";
    if (name.starts_with("functions.")) {  // Kimi: the id is functions.NAME:INDEX
      id = name;
      name = name.substr(10, name.rfind(':') == name.npos ? name.npos : name.rfind(':') - 10);
    }
    body.remove_prefix(json);
    const size_t bytes = json_extent(body);
    if (bytes == 0 || !parse_call(name, body.substr(0, bytes), out)) return false;
    out->back().id = id;
    body.remove_prefix(bytes);
  }
}

}  // namespace

// ---- the tools --------------------------------------------------------------------------------

Status ToolList::parse(std::string_view json) {
  Value given;
  GRETA_TRY(within(parse_json(json, &given), "tools"));
  if (!given.is_list()) return fail(Code::Argument, "tools: expected an array, not %s", given.type_name());
  Value tools = Value::list();
  for (size_t i = 0; i < given.size(); ++i) {
    const Value& tool = given.items()[i];
    const Value& function = tool["function"].is_dict() ? tool["function"] : tool;
    if (!is_name(function["name"].as_string()))
      return fail(Code::Argument, "tools: entry %zu has no function with a name", i);
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

std::string_view ToolList::parameter_type(std::string_view tool, std::string_view parameter) const {
  const Value* found = function(tool);
  return found ? (*found)["parameters"]["properties"][parameter]["type"].as_string() : std::string_view();
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

bool parse_calls(std::string_view body, const ToolList& tools, std::vector<ChatCall>* out) {
  body = trim_blanks(body);
  if (body.empty() || body.size() > kMaxCallBytes) return false;
  std::vector<ChatCall> calls;
  const auto attempt = [&](bool done) {
    if (!done) calls.clear();
    return done && !calls.empty();
  };
  const bool json = body[0] == '{' || (body[0] == '[' && body.find_first_of("{(") != body.npos &&
                                       body[body.find_first_of("{(")] == '{');
  const bool found =
      json             ? attempt(parse_json_calls(body, &calls))
      : body[0] == '<' ? attempt(parse_tagged(body, tools, &calls)) || attempt(parse_headed(body, &calls))
                       : attempt(parse_written_calls(body, &calls)) || attempt(parse_headed(body, &calls)) ||
                             attempt(parse_key_value(body, tools, &calls));
  if (!found) return false;
  out->insert(out->end(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
  return true;
}

}  // namespace greta
