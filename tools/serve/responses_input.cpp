// What a call of OpenAI's responses asks for, as messages and tools of chat completions.
#include "responses.h"

namespace greta::serve {
namespace {

std::string text_of_parts(const Fields& item, const char* name, const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) item.wrong(name, "a text or a list of parts", content);
  std::string text;
  for (const Json& part : content) {
    const Fields inner(part, item.path(name) + "[].");
    const std::string* type = inner.text("type");
    const std::string* words = inner.text("text");
    if (type && (*type == "input_image" || *type == "input_file" || *type == "input_audio"))
      throw Refused(400, item.path(name) + " has a part of the type " + *type + ", and only text is read",
                    item.path(name));
    if (words) text += (text.empty() ? "" : "\n") + *words;
  }
  return text;
}

// Joins what the model has said and called in one go into one message.
Json& assistant_of(std::vector<Json>* messages, std::string* reasoning) {
  if (messages->empty() || messages->back()["role"] != "assistant")
    messages->push_back({{"role", "assistant"}, {"content", ""}});
  if (!reasoning->empty()) messages->back()["reasoning_content"] = *reasoning;
  reasoning->clear();
  return messages->back();
}

void add_call(const Fields& item, const Json& arguments, std::vector<Json>* messages,
              std::string* reasoning) {
  const std::string *id = item.text("call_id"), *name = item.text("name");
  if (!id || !name) throw Refused(400, item.path("call_id") + " and the name of a call are needed");
  Json& message = assistant_of(messages, reasoning);
  message["tool_calls"].push_back(
      {{"id", *id}, {"type", "function"}, {"function", {{"name", *name}, {"arguments", arguments}}}});
}

void add_item(const Fields& item, std::vector<Json>* messages, std::string* reasoning) {
  const std::string* given = item.text("type");
  const std::string type = given ? *given : "message";
  if (type == "message") {
    const std::string* role = item.word("role", {"system", "developer", "user", "assistant", "tool"});
    const Json* content = item.find("content");
    if (!role) throw Refused(400, item.path("role") + " is missing", item.path("role"));
    const std::string text = content ? text_of_parts(item, "content", *content) : "";
    if (*role == "assistant")
      assistant_of(messages, reasoning)["content"] = text;
    else
      messages->push_back({{"role", *role}, {"content", text}});
  } else if (type == "function_call") {
    const std::string* arguments = item.text("arguments");
    add_call(item, arguments ? *arguments : "{}", messages, reasoning);
  } else if (type == "custom_tool_call") {
    const std::string* input = item.text("input");
    add_call(item, dump({{"input", input ? *input : ""}}), messages, reasoning);
  } else if (type == "function_call_output" || type == "custom_tool_call_output") {
    const std::string* id = item.text("call_id");
    const Json* output = item.find("output");
    if (!id) throw Refused(400, item.path("call_id") + " is missing", item.path("call_id"));
    messages->push_back({{"role", "tool"},
                         {"tool_call_id", *id},
                         {"content", output ? text_of_parts(item, "output", *output) : ""}});
  } else if (type == "reasoning") {
    if (const Json* content = item.find("content")) *reasoning = text_of_parts(item, "content", *content);
  }  // Items of other types say nothing to the model.
}

void add_tool(const Json& given, const std::string& path, Json* tools, ResponseCall* call) {
  if (!given.is_object()) throw Refused(400, path + " must be an object", path);
  const Fields tool(given, path + ".");
  const std::string *type = tool.text("type"), *name = tool.text("name"), *about = tool.text("description");
  const std::string kind = type ? *type : "function";
  if (kind == "namespace") {
    const Json* inner = tool.list("tools");
    for (size_t i = 0; inner && i < inner->size(); ++i)
      add_tool((*inner)[i], path + ".tools[" + std::to_string(i) + "]", tools, call);
    return;
  }
  if (kind != "function" && kind != "custom") {
    call->skipped += (call->skipped.empty() ? "" : ", ") + kind;
    return;
  }
  if (!name) throw Refused(400, path + ".name is missing", path + ".name");
  Json function = {{"name", *name}};
  if (about) function["description"] = *about;
  if (kind == "custom") {
    call->custom.insert(*name);
    function["parameters"] = {{"type", "object"},
                              {"properties", {{"input", {{"type", "string"}}}}},
                              {"required", Json::array({"input"})}};
  } else {
    const Json* parameters = tool.object("parameters");
    function["parameters"] =
        parameters ? *parameters : Json{{"type", "object"}, {"properties", Json::object()}};
  }
  tools->push_back({{"type", "function"}, {"function", function}});
}

}  // namespace

std::vector<Json> response_messages(const Fields& fields) {
  std::vector<Json> messages;
  std::string reasoning;
  const Json* input = fields.find("input");
  if (input && input->is_string()) {
    if (!input->get_ref<const std::string&>().empty())
      messages.push_back({{"role", "user"}, {"content", *input}});
  } else if (const Json* list = fields.list("input")) {
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string path = "input[" + std::to_string(i) + "]";
      if (!(*list)[i].is_object()) throw Refused(400, path + " must be an object", path);
      add_item(Fields((*list)[i], path + "."), &messages, &reasoning);
    }
  }
  const std::string* instructions = fields.text("instructions");
  if (instructions && !instructions->empty() && !messages.empty())
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", *instructions}});
  return messages;
}

void read_response_tools(const Fields& fields, Ask* ask, ResponseCall* call) {
  Json tools = Json::array();
  const Json* list = fields.list("tools");
  for (size_t i = 0; list && i < list->size(); ++i)
    add_tool((*list)[i], "tools[" + std::to_string(i) + "]", &tools, call);
  Json openai = {{"tools", tools}};
  if (const Json* choice = fields.find("tool_choice")) openai["tool_choice"] = *choice;
  read_tools(Fields(openai), ask, &call->skipped);
}

void read_response_text(const Fields& fields, const greta_tokenizer* tokenizer, Ask* ask) {
  if (const Json* reasoning = fields.object("reasoning")) {
    const Fields inner(*reasoning, "reasoning.");
    if (const std::string* effort = inner.text("effort")) {
      const Json options = {{"reasoning_effort", *effort}};
      read_template_options(Fields(options), ask);
    }
  }
  const Json* text = fields.object("text");
  const Json* form = text ? Fields(*text, "text.").object("format") : nullptr;
  if (!form) return;
  const Fields inner(*form, "text.format.");
  const std::string* type = inner.word("type", {"text", "json_object", "json_schema"});
  if (!type || *type == "text") return;
  Json wanted = {{"type", *type}};
  if (*type == "json_schema") wanted["json_schema"] = *form;
  const Json openai = {{"response_format", wanted}};
  read_sampling(Fields(openai), tokenizer, ask);
}

}  // namespace greta::serve
