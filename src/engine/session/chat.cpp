#include "engine/session/chat.h"

#include <algorithm>

namespace greta {

using jinja::Value;
using namespace std::string_view_literals;

// The state of an answer while it is generated.
struct Chat::Answer {
  const ChatAnswerOptions& options;
  const ChatEvents& events;
  ChatParser parser;
  std::string content, reasoning;
  Value calls = Value::list();
  uint32_t generated = 0, thought = 0;
  int32_t last_token = kNoToken;
  bool wanted = true;  // the caller has not stopped it
  bool cut = false;    // the reasoning has used up its tokens
};

Status Chat::open(Session& session, const ChatOptions& options, const Log& log, std::unique_ptr<Chat>* out) {
  std::unique_ptr<Chat> chat(new Chat(session));
  GRETA_TRY(chat->read(options, log));
  *out = std::move(chat);
  return {};
}

Status Chat::read(const ChatOptions& options, const Log& log) {
  const Model& model = session_.executor().model();
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
  forget_oldest_ = options.forget_oldest;
  if (!options.raw) form_ = chat_form(template_.text() + template_.tool_text());
  find_spoken();
  return {};
}

void Chat::find_spoken() {
  const Tokenizer& tokenizer = *session_.executor().model().tokenizer;
  for (uint32_t id = 0; id < tokenizer.size(); ++id)
    if (tokenizer.vocab().kind(id) == TokenKind::Control && form_.is_mark(tokenizer.vocab().text(id)))
      spoken_.push_back(int32_t(id));
}

// ---- messages -----------------------------------------------------------------------------------

Status Chat::add(Value message) {
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
  messages_.push_back(std::move(message));
  return {};
}

void Chat::truncate(size_t count) {
  messages_.resize(std::min(count, messages_.size()));
  if (system_count() + forgotten_ >= messages_.size()) forgotten_ = 0;
}

// Makes a message as templates expect it: the arguments of calls are objects, and the content is a text.
Value Chat::for_template(const Value& message) const {
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

Status Chat::render(bool add_generation_prompt, std::string* out) const {
  ChatInput input;
  input.messages = Value::list();
  const size_t system = system_count();
  for (size_t i = 0; i < messages_.size(); ++i)
    if (i < system || i >= system + forgotten_) input.messages.push(for_template(messages_[i]));
  input.tools = tools_.value();
  input.arguments = arguments_;
  input.add_generation_prompt = add_generation_prompt;
  input.now_s = now_s_;
  return template_.render(input, {}, out);
}

// ---- a full context -----------------------------------------------------------------------------

// How many messages of the system the conversation begins with.
size_t Chat::system_count() const {
  size_t count = 0;
  while (count < messages_.size() && (messages_[count]["role"].as_string() == "system" ||
                                      messages_[count]["role"].as_string() == "developer"))
    ++count;
  return count;
}

// Makes the oldest turn leave: all messages before the next one of the user. False if there is one turn left.
bool Chat::forget_turn() {
  const size_t system = system_count();
  for (size_t i = system + forgotten_ + 1; i < messages_.size(); ++i) {
    if (messages_[i]["role"].as_string() != "user") continue;
    forgotten_ = i - system;
    return true;
  }
  return false;
}

Status Chat::encode_prompt(std::string* text, std::vector<int32_t>* tokens) const {
  text->clear();
  tokens->clear();
  GRETA_TRY(render(true, text));
  return session_.executor().model().tokenizer->encode(*text, {.add_special = true, .parse_special = true},
                                                       tokens);
}

// Makes turns leave until the prompt, with what there is of the answer, takes at most three quarters of the
// context, so that this does not happen again at once. Gives the prompt; it may still be too long.
Status Chat::make_room(size_t answer_tokens, std::string* text, std::vector<int32_t>* prompt) {
  const size_t most = size_t(session_.context()) * 3 / 4;
  while (prompt->size() + answer_tokens > most && forget_turn()) GRETA_TRY(encode_prompt(text, prompt));
  return {};
}

// Gives what the session shall hold in place of `held`, which is a prompt of `prompt_size` tokens and what
// there is of the answer. Gives nothing if the last turn alone fills the context.
Status Chat::forget_within_answer(std::span<const int32_t> held, size_t* prompt_size,
                                  std::vector<int32_t>* instead) {
  const size_t forgotten = forgotten_;
  const std::span<const int32_t> said = held.subspan(*prompt_size);
  instead->assign(held.begin(), held.begin() + std::ptrdiff_t(*prompt_size));
  std::string text;
  if (forget_oldest_) GRETA_TRY(make_room(said.size(), &text, instead));
  if (instead->size() + said.size() >= held.size()) {
    forgotten_ = forgotten;
    instead->clear();
    return {};
  }
  *prompt_size = instead->size();
  instead->insert(instead->end(), said.begin(), said.end());
  return {};
}

// ---- answers ------------------------------------------------------------------------------------

Status Chat::answer(const ChatAnswerOptions& options, const ChatEvents& events, ChatResult* result) {
  const size_t forgotten = forgotten_;
  const Status status = answer_last(options, events, result);
  if (status.ok())
    result->forgotten_messages = uint32_t(forgotten_);
  else
    forgotten_ = forgotten;
  return status;
}

Status Chat::answer_last(const ChatAnswerOptions& options, const ChatEvents& events, ChatResult* result) {
  if (messages_.empty()) return fail(Code::Argument, "the conversation is empty: add a message first");
  const std::string_view last = messages_.back()["role"].as_string();
  if (last == "assistant" || last == "system" || last == "developer")
    return fail(Code::Argument, "nothing to answer: the last message has the role %s", Quoted(last).c_str());
  std::string prompt;
  std::vector<int32_t> tokens;
  GRETA_TRY(encode_prompt(&prompt, &tokens));
  if (tokens.empty()) return fail(Code::Argument, "the chat template made nothing of the conversation");
  if (forget_oldest_ && tokens.size() >= session_.context()) GRETA_TRY(make_room(0, &prompt, &tokens));
  if (tokens.size() >= session_.context())
    return fail(Code::Full, "the conversation is %zu tokens long, and the context has room for %u",
                tokens.size(), session_.context());

  size_t calls = 0;
  for (const Value& message : messages_) calls += message["tool_calls"].size();
  Answer* self = nullptr;
  ChatSink sink;
  sink.text = [&](std::string_view text) {
    self->content += text;
    return !events.text || events.text(text);
  };
  sink.reasoning = [&](std::string_view text) {
    self->reasoning += text;
    return !events.reasoning || events.reasoning(text);
  };
  sink.call = [&](ChatCall call) {
    char id[32];  // nine letters and digits, as Mistral's templates require
    format_text(id, sizeof id, "call%05zu", (calls + self->calls.size()) % 100000);
    if (call.id.empty()) call.id = id;
    Value function = Value::dict(), value = Value::dict();
    function.set("name"sv, call.name);
    function.set("arguments"sv, call.arguments);
    value.set("id"sv, call.id);
    value.set("type"sv, "function");
    value.set("function"sv, std::move(function));
    self->calls.push(std::move(value));
    return !events.call || events.call(call);
  };
  Answer answer{options, events, ChatParser(form_, tools_, prompt, std::move(sink)), {}, {}, Value::list()};
  self = &answer;
  ChatResult r;
  GRETA_TRY(generate(std::move(tokens), options, &answer, &r));
  r.open_reasoning = answer.parser.reasoning();
  if (!answer.parser.finish() && answer.wanted && r.end != ChatEnd::Cancelled) r.end = ChatEnd::Cancelled;
  if (r.end == ChatEnd::Stop && answer.calls.size() > 0) r.end = ChatEnd::ToolCalls;

  if (!answer.content.empty() || !answer.reasoning.empty() || answer.calls.size() > 0) {
    Value message = Value::dict();
    message.set("role"sv, "assistant");
    message.set("content"sv, answer.content);
    if (!answer.reasoning.empty()) message.set("reasoning_content"sv, answer.reasoning);
    if (answer.calls.size() > 0) message.set("tool_calls"sv, answer.calls);
    messages_.push_back(std::move(message));
  }
  *result = r;
  return {};
}

// Appends to `tokens` the text that closes the reasoning, after the token that an answer was cut at.
Status Chat::close_reasoning(Answer* answer, std::vector<int32_t>* tokens) {
  const std::string mark(answer->parser.reasoning_end()), end = form_.channels ? mark : "\n" + mark + "\n\n";
  if (answer->cut) *tokens = {answer->last_token};
  GRETA_TRY(session_.executor().model().tokenizer->encode(end, {.add_special = false, .parse_special = true},
                                                          tokens));
  answer->parser.push(end);
  answer->cut = false;
  return {};
}

// Feeds those of `tokens` that the session does not hold, and generates. If the reasoning is closed in
// between, its end is fed and generation goes on from there.
Status Chat::generate(std::vector<int32_t> tokens, const ChatAnswerOptions& options, Answer* answer,
                      ChatResult* result) {
  constexpr uint32_t kReasoningEndTokens = 32;  // room that is kept for the text that closes the reasoning
  constexpr ChatEnd kEnds[] = {ChatEnd::Length, ChatEnd::Stop, ChatEnd::Context, ChatEnd::Cancelled,
                               ChatEnd::Stop};  // by StopReason
  const std::span<const int32_t> held = session_.tokens();
  size_t common = 0;
  while (common < held.size() && common + 1 < tokens.size() && held[common] == tokens[common]) ++common;
  GRETA_TRY(session_.truncate(uint32_t(common)));
  result->prompt_tokens = uint32_t(tokens.size());
  result->reused_tokens = uint32_t(common);
  tokens.erase(tokens.begin(), tokens.begin() + std::ptrdiff_t(common));

  GenerateOptions generate{
      .ignore_end = options.ignore_end, .user = answer, .stops = options.stops, .spoken = spoken_};
  generate.on_token = [](void* user, int32_t token, const char* text, size_t bytes) {
    Answer& a = *static_cast<Answer*>(user);
    if (token != kNoToken) {
      ++a.generated;
      a.thought += a.parser.reasoning();
      a.last_token = token;
    }
    a.wanted = a.parser.push({text, bytes});
    a.cut = a.wanted && a.parser.reasoning() && a.options.reasoning_tokens >= 0 &&
            int64_t(a.thought) >= a.options.reasoning_tokens;
    return a.wanted && !a.cut ? 0 : 1;
  };
  size_t prompt_size = result->prompt_tokens;
  generate.on_full = [&](auto held_now, auto* to) {
    return forget_within_answer(held_now, &prompt_size, to);
  };
  generate.on_prompt = [](void* user, uint32_t done, uint32_t total) {
    const Answer& a = *static_cast<Answer*>(user);
    return a.events.prompt && !a.events.prompt(done, total) ? 1 : 0;
  };
  for (bool first = true;; first = false) {
    // With a budget of 0 tokens, reasoning that the prompt has opened is closed before it begins.
    const bool close = answer->cut || (first && options.reasoning_tokens == 0 && answer->parser.reasoning());
    if (close) GRETA_TRY(close_reasoning(answer, &tokens));
    if (options.max_tokens) generate.max_tokens = options.max_tokens - answer->generated;
    GenerateResult part;
    GRETA_TRY(session_.generate(tokens, generate, &part));
    (first ? result->prompt_ns : result->generate_ns) += part.prompt_ns;
    result->generate_ns += part.generate_ns;
    result->generated_tokens = answer->generated;
    result->reasoning_tokens = answer->thought;
    result->end = kEnds[uint32_t(part.reason)];
    if (!answer->cut) break;
    if (options.max_tokens && answer->generated >= options.max_tokens) {
      result->end = ChatEnd::Length;
      break;
    }
    if (session_.position() + kReasoningEndTokens >= session_.context()) {
      result->end = ChatEnd::Context;
      break;
    }
  }
  return {};
}

}  // namespace greta
