#include "engine/session/dialect.h"

namespace greta {

using jinja::Value;
using namespace std::string_view_literals;

std::string call_id(size_t number) {
  char id[32];
  format_text(id, sizeof id, "call%05zu", number % 100000);
  return id;
}

Status Dialect::open(const Model& model, const ChatOptions& options, const Log& log) {
  GRETA_TRY(options.chat_template.empty() ? template_.open(model.gguf, *model.tokenizer, log)
                                          : template_.open_text(options.chat_template, *model.tokenizer));
  if (template_.is_fallback() && !model.gguf.find("tokenizer.chat_template"))
    log(LogLevel::Warning,
        "the model has no chat template, so it may not be made for conversations: they are written in the "
        "format of %s",
        template_.fallback());
  if (!options.tools.empty()) GRETA_TRY(tools_.parse(options.tools));
  if (!options.arguments.empty()) {
    GRETA_TRY(within(parse_json(options.arguments, &arguments_), "template arguments"));
    if (!arguments_.is_dict())
      return fail(Code::Argument, "template arguments: expected an object, not %s", arguments_.type_name());
  }
  now_s_ = options.now_s;
  if (!options.raw) form_ = chat_form(template_.text() + template_.tool_text());
  find_spoken(*model.tokenizer);
  return {};
}

void Dialect::find_spoken(const Tokenizer& tokenizer) {
  for (uint32_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.vocab().kind(id) == TokenKind::Control && form_.is_mark(tokenizer.vocab().text(id)))
      spoken_.push_back(int32_t(id));
}

Status Dialect::check(const Value& message) {
  if (!message.is_dict())
    return fail(Code::Argument, "a message: expected an object, not %s", message.type_name());
  const Value& role = message["role"];
  if (role.as_string().empty()) return fail(Code::Argument, "a message without a role");
  const Value* content = message.find("content");
  const bool calls = message["tool_calls"].is_list() && message["tool_calls"].size() > 0;
  if (content && !content->is_string() && !content->is_list() && !content->is_none())
    return fail(Code::Argument, "a message of role %s: its content is %s, expected a text or a list",
                Quoted(role.as_string()).c_str(), content->type_name());
  if ((!content || content->is_none()) && !calls && !message["reasoning_content"].is_string())
    return fail(Code::Argument, "a message of role %s without content", Quoted(role.as_string()).c_str());
  for (const Value& call : message["tool_calls"].items())
    if (call["function"]["name"].as_string().empty())
      return fail(Code::Argument, "a message of role %s: a tool call without function.name",
                  Quoted(role.as_string()).c_str());
  return {};
}

// Makes a message as templates expect it: the arguments of calls are objects, and the content is a text.
static Value for_template(const Value& message) {
  Value out = Value::dict();
  bool has_content = false, has_thinking = false;
  for (const Value::Entry& entry : message.entries()) {
    const std::string_view key = entry.key.as_string();
    Value value = entry.value;
    if (key == "content") {
      has_content = value.is_true();
      if (value.is_none()) value = "";
    } else if (key == "tool_calls") {
      Value calls = Value::list();
      for (const Value& call : entry.value.items()) {
        Value function = Value::dict(), copy = Value::dict();
        for (const Value::Entry& part : call["function"].entries()) {
          Value parsed = part.value;
          if (part.key.as_string() == "arguments" && parsed.is_string() &&
              (!parse_json(part.value.as_string(), &parsed).ok() || !parsed.is_dict()))
            parsed = part.value;
          function.set(part.key.as_string(), std::move(parsed));
        }
        for (const Value::Entry& part : call.entries())
          copy.set(part.key.as_string(), part.key.as_string() == "function" ? function : part.value);
        calls.push(std::move(copy));
      }
      value = std::move(calls);
    }
    has_thinking |= key == "thinking";
    out.set(key, std::move(value));
  }
  if (!message.find("content")) out.set("content"sv, "");
  // gpt-oss and LFM2.5 call reasoning "thinking". A gpt-oss message with calls has no content beside it.
  const Value& reasoning = message["reasoning_content"];
  if (reasoning.is_string() && !has_thinking && !(has_content && message.find("tool_calls")))
    out.set("thinking"sv, reasoning);
  return out;
}

Status Dialect::render(std::span<const Value> messages, bool add_generation_prompt, std::string* out) const {
  ChatInput input;
  input.messages = Value::list();
  for (const Value& message : messages) input.messages.push(for_template(message));
  input.tools = tools_.value();
  input.arguments = arguments_;
  input.add_generation_prompt = add_generation_prompt;
  input.now_s = now_s_;
  return template_.render(input, {}, out);
}

Status Dialect::check_answerable(std::span<const Value> messages) {
  if (messages.empty()) return fail(Code::Argument, "the conversation is empty: add a message first");
  const std::string_view last = messages.back()["role"].as_string();
  if (last == "assistant" || last == "system" || last == "developer")
    return fail(Code::Argument, "nothing to answer: the last message has the role %s", Quoted(last).c_str());
  return {};
}

Status Dialect::prompt(const Tokenizer& tokenizer, std::span<const Value> messages, std::string* text,
                       std::vector<int32_t>* tokens) const {
  text->clear();
  tokens->clear();
  GRETA_TRY(render(messages, true, text));
  GRETA_TRY(tokenizer.encode(*text, {.add_special = true, .parse_special = true}, tokens));
  if (tokens->empty()) return fail(Code::Argument, "the chat template made nothing of the conversation");
  return {};
}

}  // namespace greta
