#include "engine/session/chat.h"

#include <algorithm>

namespace greta {

using jinja::Value;
using namespace std::string_view_literals;

// The state of an answer while it is generated.
struct Chat::Answer {
  const ChatAnswerOptions& options;
  const ChatEvents& events;
  const std::string& prompt;
  ChatParser parser;
  std::string content, reasoning;
  Value calls = Value::list();
};

Status Chat::open(Session& session, const ChatOptions& options, const Log& log, std::unique_ptr<Chat>* out) {
  std::unique_ptr<Chat> chat(new Chat(session));
  GRETA_TRY(chat->dialect_.open(session.executor().model(), options, log));
  chat->forget_oldest_ = options.forget_oldest;
  *out = std::move(chat);
  return {};
}

Status Chat::add(Value message) {
  GRETA_TRY(check_message_count(messages_.size() + 1));
  GRETA_TRY(Dialect::check(message));
  messages_.push_back(std::move(message));
  return {};
}

void Chat::truncate(size_t count) {
  messages_.resize(std::min(count, messages_.size()));
  if (system_count() + forgotten_ >= messages_.size()) forgotten_ = 0;
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

// The messages that have not left.
std::vector<Value> Chat::kept() const {
  const auto begin = messages_.begin(), system = begin + std::ptrdiff_t(system_count());
  std::vector<Value> out(begin, system);
  out.insert(out.end(), system + std::ptrdiff_t(forgotten_), messages_.end());
  return out;
}

Status Chat::encode_prompt(std::string* text, std::vector<int32_t>* tokens) const {
  return dialect_.prompt(*session_.executor().model().tokenizer, kept(), text, tokens);
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
  GRETA_TRY(dialect_.check_answerable(messages_));
  std::string prompt;
  std::vector<int32_t> tokens;
  GRETA_TRY(encode_prompt(&prompt, &tokens));
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
    if (call.id.empty()) call.id = call_id(calls + self->calls.size());
    Value function = Value::dict(), value = Value::dict();
    function.set("name"sv, call.name);
    function.set("arguments"sv, call.arguments);
    value.set("id"sv, call.id);
    value.set("type"sv, "function");
    value.set("function"sv, std::move(function));
    self->calls.push(std::move(value));
    return !events.call || events.call(call);
  };
  Answer answer{
      options, events, prompt,       ChatParser(dialect_.form(), dialect_.tools(), prompt, std::move(sink)),
      {},      {},     Value::list()};
  self = &answer;
  ChatResult r;
  GRETA_TRY(generate(std::move(tokens), options, &answer, &r));
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

// Feeds those of `tokens` that the session does not hold, and generates. A grammar holds the answer alone,
// behind its reasoning.
Status Chat::generate(std::vector<int32_t> tokens, const ChatAnswerOptions& options, Answer* answer,
                      ChatResult* result) {
  constexpr ChatEnd kEnds[] = {ChatEnd::Length, ChatEnd::Stop, ChatEnd::Context, ChatEnd::Cancelled,
                               ChatEnd::Stop};  // by StopReason
  const std::span<const int32_t> held = session_.tokens();
  size_t common = 0;
  while (common < held.size() && common + 1 < tokens.size() && held[common] == tokens[common]) ++common;
  GRETA_TRY(session_.truncate(uint32_t(common)));
  std::vector<uint32_t> places = dialect_.message_places(tokens);
  result->prompt_tokens = uint32_t(tokens.size());
  result->reused_tokens = uint32_t(common);
  size_t prompt_size = tokens.size();
  tokens.erase(tokens.begin(), tokens.begin() + std::ptrdiff_t(common));

  GenerateOptions generate;
  generate.places = std::move(places);
  generate.max_tokens = options.max_tokens;
  generate.ignore_end = options.ignore_end;
  generate.reasoning_tokens = options.reasoning_tokens;
  generate.parser = &answer->parser;
  generate.stops = options.stops;
  generate.spoken = dialect_.spoken();
  generate.on_full = [&](auto held_now, auto* to) {
    return forget_within_answer(held_now, &prompt_size, to);
  };
  generate.user = answer;
  generate.on_prompt = [](void* user, uint32_t done, uint32_t total) {
    const Answer& a = *static_cast<Answer*>(user);
    return a.events.prompt && !a.events.prompt(done, total) ? 1 : 0;
  };
  std::shared_ptr<const Grammar> grammar = session_.grammar();
  if (options.reasoning_tokens != 0)
    GRETA_TRY(dialect_.hold_answer(*session_.executor().model().tokenizer, answer->prompt, &grammar));
  session_.begin_grammar(std::move(grammar));
  GenerateResult written;
  GRETA_TRY(session_.generate(tokens, generate, &written));
  result->prompt_ns = written.prompt_ns;
  result->generate_ns = written.generate_ns;
  result->generated_tokens = written.generated_tokens;
  result->reasoning_tokens = written.reasoning_tokens;
  result->open_reasoning = written.open_reasoning;
  result->end = kEnds[uint32_t(written.reason)];
  return {};
}

}  // namespace greta
