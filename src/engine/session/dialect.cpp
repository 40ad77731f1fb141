#include "engine/session/dialect.h"

#include <algorithm>
#include <map>

namespace greta {

using jinja::Value;
using namespace std::string_view_literals;

constexpr std::string_view kWhiteSpace = " \t\r\n";

static std::string_view without_white(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kWhiteSpace)));
  return text.substr(0, text.find_last_not_of(kWhiteSpace) + 1);
}

std::string call_id(size_t number) {
  char id[32];
  format_text(id, sizeof id, "call%05zu", number % 100000);
  return id;
}

Status check_message_count(size_t count) {
  if (count <= kMaxMessages) return {};
  return fail(Code::Argument, "a conversation of %zu messages, expected at most %zu", count, kMaxMessages);
}

static std::vector<int32_t> find_spoken(const ChatForm& form, const Vocab& vocab) {
  std::vector<int32_t> spoken;
  for (uint32_t id = 0; id < vocab.size(); ++id)
    if (vocab.kind(id) == TokenKind::Control && form.is_mark(vocab.text(id))) spoken.push_back(int32_t(id));
  return spoken;
}

// The template is asked what the model's answer begins with.
static int32_t find_message_token(const ChatTemplate& chat, const Tokenizer& tokenizer) {
  Value message = Value::dict(), messages = Value::list();
  message.set("role"sv, "user");
  message.set("content"sv, "a");
  messages.push(std::move(message));
  const jinja::Limits limits = {.steps = 1'000'000, .output_bytes = 1u << 20};
  std::string said, asked;
  std::vector<int32_t> tokens;
  ChatInput input;
  input.messages = std::move(messages);
  if (!chat.render(input, limits, &asked).ok()) return kNoToken;
  input.add_generation_prompt = false;
  if (!chat.render(input, limits, &said).ok() || !asked.starts_with(said) ||
      !tokenizer.encode(asked.substr(said.size()), {.add_special = false, .parse_special = true}, &tokens)
           .ok() ||
      tokens.empty() || tokenizer.vocab().kind(uint32_t(tokens[0])) != TokenKind::Control)
    return kNoToken;
  return tokens[0];
}

Status ChatManner::open(const Model& model, std::string_view chat_template, const Log& log) {
  GRETA_TRY(chat_template.empty() ? chat.open(model.gguf, *model.tokenizer, log)
                                  : chat.open_text(chat_template, *model.tokenizer));
  if (chat.is_fallback() && !model.gguf.find("tokenizer.chat_template"))
    log(LogLevel::Warning,
        "the model has no chat template, so it may not be made for conversations: they are written in the "
        "format of %s",
        chat.fallback());
  form = chat_form(chat.text() + chat.tool_text());
  spoken = find_spoken(form, model.tokenizer->vocab());
  message_token = find_message_token(chat, *model.tokenizer);
  return {};
}

Status Dialect::open(const Model& model, const ChatOptions& options, const Log& log) {
  auto manner = std::make_shared<ChatManner>();
  GRETA_TRY(manner->open(model, options.chat_template, log));
  return open(model, options, std::move(manner));
}

Status Dialect::open(const Model& model, const ChatOptions& options,
                     std::shared_ptr<const ChatManner> manner) {
  manner_ = std::move(manner);
  if (!options.tools.empty()) GRETA_TRY(tools_.parse(options.tools));
  if (!options.arguments.empty()) {
    GRETA_TRY(within(parse_json(options.arguments, &arguments_), "template arguments"));
    if (!arguments_.is_dict())
      return fail(Code::Argument, "template arguments: expected an object, not %s", arguments_.type_name());
  }
  now_s_ = options.now_s;
  parse_content_ = options.parse_content;
  join_system_ = options.join_system;
  continue_answer_ = options.continue_answer;
  if (!options.raw) form_ = manner_->form;
  spoken_ = options.raw ? find_spoken(form_, model.tokenizer->vocab()) : manner_->spoken;
  GRETA_TRY(read_tool_choice(options.tool_choice, tools_, &choice_));
  choice_.one_call = options.one_call;
  choice_.strict = options.strict_tools;
  if (choice_.kind == ToolChoice::Kind::Free && (choice_.one_call || choice_.strict))
    choice_.kind = ToolChoice::Kind::Auto;
  if (!tools_.empty()) find_calls(*model.tokenizer);
  return {};
}

// Has the template write calls.
void Dialect::find_calls(const Tokenizer& tokenizer) {
  const RenderConversation render = [&](const Value& messages, const Value& tools, std::string* out) {
    const jinja::Limits limits = {.steps = 1'000'000, .output_bytes = 1u << 20};
    return manner_->chat.render({.messages = messages, .tools = tools, .arguments = arguments_}, limits, out)
        .ok();
  };
  form_.style = find_call_style(render);
  if (choice_.kind == ToolChoice::Kind::Free) return;
  std::vector<std::string> ends;
  for (const int32_t token : tokenizer.ends()) ends.emplace_back(tokenizer.vocab().text(uint32_t(token)));
  writing_ = find_call_writing(manner_->form, ends, render);
}

// The text of a part of a content; null if the part is no text.
static const Value* text_of_part(const Value& part) {
  if (part.is_string()) return &part;
  const std::string_view type = part["type"].as_string();
  const bool is_text = !part.find("type") || type == "text" || type == "input_text" || type == "output_text";
  const Value* text = part.find("text");
  return is_text && text && text->is_string() ? text : nullptr;
}

static Status check_parts(const Value& content, std::string_view role) {
  for (size_t i = 0; i < content.size(); ++i) {
    const Value& part = content.items()[i];
    if (text_of_part(part)) continue;
    const Quoted of(role), type(part["type"].as_string());
    if (part["type"].is_string() && part["type"].as_string() != "text")
      return fail(Code::Unsupported,
                  "a message of role %s: part %zu of its content is of type %s, and only text is read",
                  of.c_str(), i, type.c_str());
    return fail(Code::Argument, "a message of role %s: part %zu of its content has no text", of.c_str(), i);
  }
  return {};
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
  if (content && content->is_list()) GRETA_TRY(check_parts(*content, role.as_string()));
  if ((!content || content->is_none()) && !calls && !message["reasoning_content"].is_string())
    return fail(Code::Argument, "a message of role %s without content", Quoted(role.as_string()).c_str());
  for (const Value& call : message["tool_calls"].items())
    if (call["function"]["name"].as_string().empty())
      return fail(Code::Argument, "a message of role %s: a tool call without function.name",
                  Quoted(role.as_string()).c_str());
  return {};
}

// Makes a content of parts as a template expects it: a list of dicts, or else a text of one line for each.
static Value parts_for_template(const Value& content, bool as_list) {
  Value list = Value::list();
  std::string text;
  for (const Value& item : content.items()) {
    const Value* part_text = text_of_part(item);
    if (!part_text) continue;  // check() has refused it
    Value part = Value::dict();
    part.set("type"sv, "text");
    part.set("text"sv, *part_text);
    if (list.size()) text += '\n';
    text += part_text->as_string();
    list.push(std::move(part));
  }
  return as_list && list.size() ? list : Value(text);
}

// Makes a message as templates expect it: the arguments of calls are objects, and the content is a text, or a
// list of parts if it is one and the template reads `lists`.
static Value for_template(const Value& message, bool lists) {
  Value out = Value::dict();
  bool has_content = false, has_thinking = false;
  for (const Value::Entry& entry : message.entries()) {
    const std::string_view key = entry.key.as_string();
    Value value = entry.value;
    if (key == "content") {
      has_content = value.is_true();
      if (value.is_none()) value = "";
      if (value.is_list()) value = parts_for_template(value, lists);
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

// Tries whether the template writes a list of parts as it writes their texts, in a short conversation with a
// message of that role. A template that refuses the conversation, or writes another text, knows only texts.
static bool reads_lists(const ChatTemplate& form, const ChatInput& settings, std::string_view role) {
  const auto writes = [&](const char* content, std::string* text) {
    std::string tried = "{\"role\": ";
    jinja::append_json_string(role, false, &tried);
    tried += std::string(R"(, "tool_call_id": "call00000", "name": "f", "content": )") + content + "}";
    const std::string user = R"({"role": "user", "content": "greta-question"})";
    const std::string call =
        R"({"role": "assistant", "content": "", "tool_calls": [{"id": "call00000", "type": "function",
            "function": {"name": "f", "arguments": {}}}]})";
    const bool leads = role == "system" || role == "developer";
    const std::string json = role == "user"        ? tried
                             : leads               ? tried + "," + user
                             : role == "assistant" ? user + "," + tried + "," + user
                                                   : user + "," + call + "," + tried;
    ChatInput input = settings;
    if (!parse_json("[" + json + "]", &input.messages).ok()) return false;
    return form.render(input, {}, text).ok();
  };
  std::string whole, one, two;
  return writes("\"greta-part-one\"", &whole) &&
         writes(R"([{"type": "text", "text": "greta-part-one"}])", &one) && whole == one &&
         writes(R"([{"type": "text", "text": "greta-part-one"}, {"type": "text", "text": "greta-part-two"}])",
                &two) &&
         two.find("greta-part-one") != two.npos && two.find("greta-part-two") != two.npos;
}

static bool is_system(const Value& message) {
  const std::string_view role = message["role"].as_string();
  return role == "system" || role == "developer";
}

static std::string text_of(const Value& content) {
  return std::string(content.is_list() ? parts_for_template(content, false).as_string()
                                       : content.as_string());
}

// Makes one message of all those of the system and of developers, in their order, since templates refuse a
// second one or one that comes later. It has the role of the first.
static std::vector<Value> with_one_system(std::span<const Value> messages) {
  std::vector<Value> out;
  std::string text;
  Value first;
  for (const Value& message : messages) {
    if (!is_system(message)) {
      out.push_back(message);
      continue;
    }
    const std::string next = text_of(message["content"]);
    if (first.is_undefined()) first = message;
    if (!text.empty() && !next.empty()) text += "\n\n";
    text += next;
  }
  if (first.is_undefined()) return out;
  Value joined = Value::dict();
  for (const Value::Entry& entry : first.entries()) joined.set(entry.key, entry.value);
  joined.set("content"sv, text);
  out.insert(out.begin(), std::move(joined));
  return out;
}

ChatInput Dialect::input(std::span<const Value> messages, bool add_generation_prompt) const {
  std::vector<Value> joined;
  if (join_system_) {
    joined = with_one_system(messages);
    messages = joined;
  }
  ChatInput input;
  input.messages = Value::list();
  input.tools = tools_.value();
  input.arguments = arguments_;
  input.add_generation_prompt = add_generation_prompt;
  input.now_s = now_s_;
  std::map<std::string_view, bool> lists;  // by role
  for (const Value& message : messages) {
    const std::string_view role = message["role"].as_string();
    const bool has_parts = message["content"].is_list();
    if (has_parts && !lists.contains(role)) lists[role] = reads_lists(manner_->chat, input, role);
    input.messages.push(for_template(message, has_parts && lists[role]));
  }
  return input;
}

Status Dialect::render(std::span<const Value> messages, bool add_generation_prompt, std::string* out) const {
  return manner_->chat.render(input(messages, add_generation_prompt), {}, out);
}

Status Dialect::check_answerable(std::span<const Value> messages) const {
  if (messages.empty()) return fail(Code::Argument, "the conversation is empty: add a message first");
  size_t count = messages.size();
  if (join_system_ && !continue_answer_)  // what the system says at the end goes to the beginning
    while (count > 1 && is_system(messages[count - 1])) --count;
  const std::string_view last = messages[count - 1]["role"].as_string();
  if (continue_answer_) {
    if (last != "assistant")
      return fail(Code::Argument, "nothing to continue: the last message has the role %s, expected assistant",
                  Quoted(last).c_str());
    if (without_white(text_of(messages.back()["content"])).empty())
      return fail(Code::Argument, "nothing to continue: the last message has no text");
    if (messages.back()["tool_calls"].size() > 0)
      return fail(Code::Argument, "nothing to continue: the last message has calls of tools");
    return {};
  }
  if (last == "assistant" || last == "system" || last == "developer")
    return fail(Code::Argument, "nothing to answer: the last message has the role %s", Quoted(last).c_str());
  return {};
}

// Finds where the text of the last message ends in the rendering. Templates trim it, or write it as it is.
static Status find_end_of_answer(std::string_view rendered, std::string_view content, size_t* bytes) {
  const std::string_view text = without_white(content);
  const size_t at = rendered.rfind(text);
  if (at == rendered.npos)
    return fail(Code::Unsupported,
                "the last message cannot be continued: the chat template does not write its text as it is");
  *bytes = at + text.size();
  const std::string_view white =
      content.substr(std::min(content.size(), content.find_last_not_of(kWhiteSpace) + 1));
  if (rendered.substr(*bytes).starts_with(white)) *bytes += white.size();
  return {};
}

Status Dialect::prompt(const Tokenizer& tokenizer, std::span<const Value> messages, std::string* text,
                       std::vector<int32_t>* tokens) const {
  text->clear();
  tokens->clear();
  CutRendering cut;
  if (continue_answer_)
    cut = [&](std::string_view rendered, size_t* bytes) {
      return find_end_of_answer(rendered, text_of(messages.back()["content"]), bytes);
    };
  if (parse_content_) {
    GRETA_TRY(render(messages, !continue_answer_, text));
    size_t bytes = text->size();
    if (cut) GRETA_TRY(cut(*text, &bytes));
    text->resize(bytes);
    GRETA_TRY(tokenizer.encode(*text, {.add_special = true, .parse_special = true}, tokens));
  } else {
    GRETA_TRY(encode_apart(manner_->chat, input(messages, !continue_answer_), tokenizer, text, tokens, cut));
  }
  // An answer that goes on has no end yet.
  if (continue_answer_ && tokenizer.adds_eos() && tokens->size() > 1 && tokens->back() == tokenizer.eos())
    tokens->pop_back();
  if (tokens->empty()) return fail(Code::Argument, "the chat template made nothing of the conversation");
  return {};
}

std::vector<uint32_t> Dialect::message_places(std::span<const int32_t> tokens) const {
  std::vector<uint32_t> begins, places;
  for (uint32_t at = 0; at < tokens.size() && manner_->message_token != kNoToken; ++at)
    if (tokens[at] == manner_->message_token) begins.push_back(at);
  if (!continue_answer_ && !begins.empty()) begins.pop_back();  // that of the answer
  if (begins.size() > 1) places.push_back(begins[1]);
  if (begins.size() > 2) places.push_back(begins.back());
  return places;
}

// Answers that are not taken apart have their reasoning all the same.
Status Dialect::hold_answer(const Tokenizer& tokenizer, std::string_view prompt,
                            std::shared_ptr<const Grammar>* grammar, bool calls) const {
  if (!*grammar) return {};
  return hold_behind_reasoning(manner_->form, tokenizer, prompt, grammar, calls);
}

// In channels the grammar of calls is that of a whole answer, and behind closed reasoning the final message
// has begun.
Status Dialect::hold_request(const Tokenizer& tokenizer, std::string_view prompt, bool reasons,
                             const Log& log, std::shared_ptr<const Grammar>* grammar,
                             std::shared_ptr<const Grammar>* whole) const {
  const std::shared_ptr<const Grammar> said = *grammar;
  GRETA_TRY(hold_calls(manner_->form, writing_, tools_, choice_, tokenizer, log, grammar));
  *whole = *grammar;
  const bool calls = *grammar != said;
  if (calls && manner_->form.channels) *grammar = said;
  return reasons ? hold_answer(tokenizer, prompt, whole, calls) : Status{};
}

}  // namespace greta
