#include <algorithm>

#include "endpoints.h"

namespace greta::serve {
namespace {

constexpr size_t kMostMessages = 65536, kMostTools = 4096;

// The name that tool_choice asks for; "auto", "none" and "required" stay words.
std::string chosen_tool(const Fields& fields, bool* named) {
  const Json* choice = fields.find("tool_choice");
  if (!choice) return "auto";
  if (choice->is_string()) return *fields.word("tool_choice", {"auto", "none", "required"});
  if (!choice->is_object()) fields.wrong("tool_choice", "a text or an object", *choice);
  *named = true;
  const Fields inner(*choice, "tool_choice.");
  const Json* function = inner.object("function");
  const std::string* name =
      function ? Fields(*function, "tool_choice.function.").text("name") : inner.text("name");
  if (!name) throw Refused(400, "tool_choice names no function", "tool_choice");
  return *name;
}

}  // namespace

std::vector<Json> read_messages(const Fields& fields) {
  const Json* list = fields.list("messages");
  if (!list || list->empty())
    throw Refused(400, "messages must be a list of at least one message", "messages");
  if (list->size() > kMostMessages) throw Refused(400, "there are more than 65536 messages", "messages");
  std::vector<Json> messages;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = "messages[" + std::to_string(i) + "]";
    if (!(*list)[i].is_object()) throw Refused(400, path + " must be an object", path);
    const Fields message((*list)[i], path + ".");
    if (!message.word("role", {"system", "developer", "user", "assistant", "tool", "function"}))
      throw Refused(400, path + ".role is missing", path + ".role");
    const Json* content = message.find("content");
    if (content && !content->is_string() && !content->is_array())
      message.wrong("content", "a text or a list of parts", *content);
    if (content && content->is_array())
      for (const Json& part : *content)
        if (!part.is_object()) message.wrong("content", "a list of objects", part);
    message.list("tool_calls");
    messages.push_back((*list)[i]);
  }
  return messages;
}

void set_messages(std::vector<Json> messages, Ask* ask) {
  if (messages.empty()) throw Refused(400, "there is no message to answer", "messages");
  for (Json& message : messages) {
    Json& role = message["role"];
    if (role == "function") role = "tool";
    if (role == "developer") role = "system";  // few templates know the other
  }
  const Json& last = messages.back();
  ask->continue_answer = last["role"] == "assistant" && !last.contains("tool_calls");
  for (const Json& message : messages) ask->messages.push_back(dump(message));
}

void read_tools(const Fields& fields, Ask* ask, std::string* skipped) {
  const Json* list = fields.list("tools");
  bool named = false;
  const std::string choice = chosen_tool(fields, &named);
  Json tools = Json::array();
  if (list && list->size() > kMostTools) throw Refused(400, "there are more than 4096 tools", "tools");
  for (size_t i = 0; list && i < list->size(); ++i) {
    const std::string path = "tools[" + std::to_string(i) + "]";
    if (!(*list)[i].is_object()) throw Refused(400, path + " must be an object", path);
    const Fields tool((*list)[i], path + ".");
    const std::string* type = tool.text("type");
    if (type && *type != "function") {
      *skipped += (skipped->empty() ? "" : ", ") + *type;
      continue;
    }
    const Json* function = tool.object("function");
    if (!function) throw Refused(400, path + ".function is missing", path + ".function");
    if (!Fields(*function, path + ".function.").text("name"))
      throw Refused(400, path + ".function.name is missing", path + ".function.name");
    tools.push_back((*list)[i]);
  }
  const auto has = [&](const Json& tool) { return tool["function"]["name"] == choice; };
  if (named && std::none_of(tools.begin(), tools.end(), has))
    throw Refused(400, "tool_choice names the tool " + json_string(choice) + ", which is not among tools",
                  "tool_choice");
  if (choice == "required" && tools.empty())
    throw Refused(400, "tool_choice is \"required\", and there are no tools", "tool_choice");
  const auto parallel = fields.flag("parallel_tool_calls");
  if (choice == "none" || tools.empty()) return;
  ask->tools = dump(tools);
  if (named || choice == "required") ask->tool_choice = choice;
  ask->one_call = parallel && !*parallel;
}

void read_template_options(const Fields& fields, Ask* ask) {
  Json& arguments = ask->template_arguments;
  const auto set = [&arguments](const char* name, Json value) {
    if (!arguments.is_object()) arguments = Json::object();
    arguments[name] = std::move(value);
  };
  if (const std::string* effort = fields.text("reasoning_effort")) {
    set("reasoning_effort", *effort);
    if (*effort == "none") set("enable_thinking", false);
  }
  if (const auto thinking = fields.flag("enable_thinking")) set("enable_thinking", *thinking);
  if (const Json* more = fields.object("chat_template_kwargs"))
    for (const auto& [name, value] : more->items()) set(name.c_str(), value);
  if (const std::string* text = fields.text("chat_template")) ask->chat_template = *text;
  if (const std::string* form =
          fields.word("reasoning_format", {"auto", "none", "deepseek", "deepseek-legacy"}))
    ask->raw = *form == "none";
}

void read_conversation(const Fields& fields, Ask* ask, std::string* skipped) {
  read_template_options(fields, ask);
  read_tools(fields, ask, skipped);
  set_messages(read_messages(fields), ask);
  const auto go_on = fields.flag("continue_final_message");
  if (!go_on) return;
  if (*go_on && !ask->continue_answer)
    throw Refused(400, "continue_final_message needs a last message of the role \"assistant\"",
                  "continue_final_message");
  ask->continue_answer = *go_on;
}

}  // namespace greta::serve
