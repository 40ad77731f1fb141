// greta-cli chat: a conversation, rendered as a whole every turn; only what is new is fed.
#include <stdio.h>
#include <stdlib.h>

#include <CLI/Config.hpp>
#include <memory>

#include "commands.h"
#include "console.h"
#include "model.h"

namespace greta::cli {
namespace {

struct ChatOptions {
  EngineOptions engine;
  TextOptions text;
  SamplingOptions sampling;
  std::string system;
  int64_t predict = -1;
  bool ignore_end = false;
};

class Conversation {
 public:
  Conversation(const Engine& engine, const ChatOptions& options)
      : session_(engine.session.get()), tokenizer_(engine.tokenizer()), options_(options) {
    restart();
    held_.reserve(greta_session_context(session_));
  }
  void restart();
  // Writes the answer to `text`. False if the conversation has no room for it; then it is as before.
  bool answer(const std::string& text);
  // Throws if the model's template is not one that we know.
  void check_template() const;

 private:
  struct Message {
    std::string role, content;
  };
  std::string render(bool add_answer) const;
  static int take_token(void* user, int32_t token, const char* text, size_t bytes);
  static int watch_prompt(void*, uint32_t, uint32_t) { return interrupted() ? 1 : 0; }

  greta_session* session_;
  const greta_tokenizer* tokenizer_;
  const ChatOptions& options_;
  std::vector<Message> messages_;
  std::vector<int32_t> held_;  // tokens that the session has, position by position
  std::string answer_;
};

void Conversation::restart() {
  messages_.clear();
  if (!options_.system.empty()) messages_.push_back({"system", options_.system});
}

std::string Conversation::render(bool add_answer) const {
  std::vector<greta_message> messages;
  for (const Message& m : messages_) messages.push_back({m.role.c_str(), m.content.c_str()});
  size_t bytes = 0;
  const auto write = [&](char* to, size_t capacity) {
    check(greta_tokenizer_chat(tokenizer_, messages.data(), messages.size(), add_answer, to, capacity,
                               &bytes));
  };
  write(nullptr, 0);
  std::string text(bytes + 1, '\0');
  write(text.data(), text.size());
  text.resize(bytes);
  return text;
}

void Conversation::check_template() const {
  const greta_message probe = {"user", "?"};
  size_t bytes = 0;
  if (greta_tokenizer_chat(tokenizer_, &probe, 1, 1, nullptr, 0, &bytes) == GRETA_OK) return;
  throw Failed(std::string(greta_error_text()) + "; `greta-cli run` continues plain text with any model");
}

int Conversation::take_token(void* user, int32_t token, const char* text, size_t bytes) {
  auto* self = static_cast<Conversation*>(user);
  self->held_.push_back(token);
  self->answer_.append(text, bytes);
  return write_output({text, bytes}) && !interrupted() ? 0 : 1;
}

bool Conversation::answer(const std::string& text) {
  messages_.push_back({"user", text});
  const auto tokens = encode(tokenizer_, render(true), GRETA_ENCODE_BOS | GRETA_ENCODE_SPECIAL);
  const uint32_t context = greta_session_context(session_);
  if (tokens.size() >= context) {
    messages_.pop_back();
    say(format("with this message the conversation is %zu tokens long, and the context has room for %u "
               "(-c sets another; /clear starts anew)", tokens.size(), context));
    return false;
  }
  size_t common = 0;
  while (common < held_.size() && common + 1 < tokens.size() && held_[common] == tokens[common]) ++common;
  check(greta_session_truncate(session_, static_cast<uint32_t>(common)));
  held_ = tokens;
  answer_.clear();

  auto generate = sized<greta_generate_options>();
  generate.max_tokens = options_.predict < 0 ? 0 : static_cast<uint32_t>(options_.predict);
  generate.ignore_end = options_.ignore_end ? 1 : 0;
  generate.on_token = take_token;
  generate.on_prompt = watch_prompt;
  generate.user = this;
  auto result = sized<greta_generate_result>();
  const greta_status status =
      greta_session_generate(session_, tokens.data() + common, tokens.size() - common, &generate, &result);
  held_.resize(greta_session_position(session_));  // the last token drawn was not fed
  check_output();
  if (!interrupted()) check(status);
  put("\n");
  if (result.reason == GRETA_STOP_CONTEXT) {
    note(format("the context of %u tokens is full; /clear starts anew, -c sets another", context));
  }
  if (answer_.empty() && interrupted()) {
    messages_.pop_back();  // as if it had not been asked
  } else {
    messages_.push_back({"assistant", answer_});
  }
  return true;
}

// A line from the terminal without its end; nothing at Ctrl-D.
std::optional<std::string> read_line() {
  on_interrupt(OnInterrupt::kLeave);
  show_prompt();
  char* line = nullptr;
  size_t capacity = 0;
  const ssize_t length = getline(&line, &capacity, stdin);
  on_interrupt(OnInterrupt::kStop);
  std::optional<std::string> text;
  if (length >= 0) text.emplace(line, static_cast<size_t>(length));
  free(line);
  if (text && !text->empty() && text->back() == '\n') text->pop_back();
  return text;
}

int talk(Conversation& conversation) {
  note("Ctrl-C stops an answer, /clear starts anew, /exit or Ctrl-D leaves");
  while (const std::optional<std::string> line = read_line()) {
    if (line->find_first_not_of(" \t") == std::string::npos) continue;
    if (*line == "/exit") return kExitOk;
    if (*line == "/clear") {
      conversation.restart();
      continue;
    }
    conversation.answer(*line);
    forget_interrupt();
  }
  write_error("\n");
  return kExitOk;
}

int chat(const ChatOptions& options) {
  options.engine.verbosity.apply();
  const std::optional<std::string> message = read_text(options.text, true);
  if (message && message->empty()) throw Misused("the message is empty");
  const Engine engine = open_engine(options.engine);
  set_sampling(engine.session.get(), options.sampling);
  Conversation conversation(engine, options);
  conversation.check_template();
  if (!message) return talk(conversation);
  if (!conversation.answer(*message)) return kExitFailed;
  return interrupted() ? kExitInterrupted : kExitOk;
}

}  // namespace

Action chat_command(CLI::App& app) {
  auto options = std::make_shared<ChatOptions>();
  app.add_option("--system-prompt", options->system, "what the model is told first")->type_name("TEXT");
  add_options(app, options->text);
  app.add_option("-n,--predict", options->predict, "most tokens of an answer; -1: as long as the model wants")
      ->type_name("N")
      ->check(CLI::Range(int64_t{-1}, int64_t{INT32_MAX}))
      ->capture_default_str();
  app.add_flag("--ignore-eos", options->ignore_end, "go on after the model has ended its answer");
  add_options(app, options->sampling);
  add_options(app, options->engine);
  app.footer(
      "With -p, -f or a pipe the text is one message: it is answered, and that is all.\n"
      "On a terminal Ctrl-C stops an answer; at the prompt it leaves, as Ctrl-D does.");
  return [options] { return chat(*options); };
}

}  // namespace greta::cli
