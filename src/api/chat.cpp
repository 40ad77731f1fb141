// The functions of greta.h for chats.
#include <algorithm>

#include "api/handles.h"

using namespace greta;
using namespace std::string_view_literals;

static_assert(uint32_t(ChatEnd::Cancelled) == GRETA_CHAT_END_CANCELLED &&
              uint32_t(ChatEnd::ToolCalls) == GRETA_CHAT_END_TOOL_CALLS);

struct greta_chat {
  const greta_session* session;
  std::unique_ptr<Chat> chat;
  std::string role, content, json;  // what greta_chat_get gave out last
};

namespace {

std::string_view view(const char* text) { return text ? std::string_view(text) : std::string_view(); }

// Passes the engine's events on to the caller's callback.
struct EventCall {
  int (*on_event)(void* user, const greta_chat_event* event);
  void* user;
  std::string text;  // a copy of the piece that ends with a NUL

  bool call(greta_chat_event& event) const {
    event.struct_size = sizeof event;
    return call_back("on_event", [&] { return on_event(user, &event); }) == 0;
  }
  bool give_text(greta_chat_part part, std::string_view piece) {
    text = piece;
    greta_chat_event event = {};
    event.part = part;
    event.text = text.c_str();
    event.bytes = text.size();
    return call(event);
  }
  ChatEvents events() {
    ChatEvents out;
    if (!on_event) return out;
    out.text = [this](std::string_view piece) { return give_text(GRETA_CHAT_TEXT, piece); };
    out.reasoning = [this](std::string_view piece) { return give_text(GRETA_CHAT_REASONING, piece); };
    out.call = [this](const ChatCall& made) {
      greta_chat_event event = {};
      event.part = GRETA_CHAT_TOOL_CALL;
      event.id = made.id.c_str();
      event.name = made.name.c_str();
      event.arguments = made.arguments.c_str();
      return call(event);
    };
    out.prompt = [this](uint32_t done, uint32_t total) {
      greta_chat_event event = {};
      event.part = GRETA_CHAT_PROMPT;
      event.done = done;
      event.total = total;
      return call(event);
    };
    return out;
  }
};

}  // namespace

Status greta::read_message(const greta_message& given, jinja::Value* out) {
  *out = jinja::Value::dict();
  if (given.role) out->set("role"sv, given.role);
  if (given.content) out->set("content"sv, given.content);
  if (!given.json) return {};
  jinja::Value parsed;
  GRETA_TRY(within(jinja::parse_json(given.json, &parsed), "the message"));
  if (!parsed.is_dict())
    return fail(Code::Argument, "the message: expected an object, not %s", parsed.type_name());
  for (const jinja::Value::Entry& entry : parsed.entries()) out->set(entry.key.as_string(), entry.value);
  return {};
}

Status greta::read_chat_options(const greta_chat_options& given, ChatOptions* out) {
  out->chat_template = view(given.chat_template);
  out->tools = view(given.tools);
  out->arguments = view(given.arguments);
  out->now_s = given.now_s;
  GRETA_TRY(read_flag(given.raw, "raw", &out->raw));
  GRETA_TRY(read_flag(given.parse_content, "parse_content", &out->parse_content));
  out->tool_choice = view(given.tool_choice);
  GRETA_TRY(read_flag(given.one_call, "one_call", &out->one_call));
  GRETA_TRY(read_flag(given.strict_tools, "strict_tools", &out->strict_tools));
  GRETA_TRY(read_flag(given.join_system, "join_system", &out->join_system));
  GRETA_TRY(read_flag(given.continue_answer, "continue_answer", &out->continue_answer));
  return read_flag(given.forget_oldest, "forget_oldest", &out->forget_oldest);
}

Status ChatManners::find(const Model& model, std::string_view chat_template, const Log& log,
                         std::shared_ptr<const ChatManner>* out) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto same = [&](const Kept& kept) { return kept.chat_template == chat_template; };
  const auto found = std::ranges::find_if(kept_, same);
  if (found != kept_.end()) {
    std::rotate(found, found + 1, kept_.end());
    *out = kept_.back().manner;
    return {};
  }
  auto manner = std::make_shared<ChatManner>();
  GRETA_TRY(manner->open(model, chat_template, log));
  if (kept_.size() == kMost) kept_.erase(kept_.begin());
  kept_.push_back({std::string(chat_template), manner});
  *out = std::move(manner);
  return {};
}

greta_status greta_chat_open(greta_session* session, const greta_chat_options* given, greta_chat** out_chat) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(session, "session"));
    GRETA_TRY(need(out_chat, "out_chat"));
    greta_chat_options o;
    GRETA_TRY(read_options(given, &o));
    auto chat = std::make_unique<greta_chat>();
    chat->session = session;
    ChatOptions options;
    GRETA_TRY(read_chat_options(o, &options));
    if (options.continue_answer)
      return fail(Code::Unsupported, "continue_answer: only requests go on with an answer");
    if (!options.tool_choice.empty() || options.one_call || options.strict_tools)
      return fail(Code::Unsupported, "tool_choice, one_call and strict_tools: only requests hold calls");
    GRETA_TRY(Chat::open(*session->session, options, session->executor->runtime->log, &chat->chat));
    *out_chat = chat.release();
    return {};
  });
}

void greta_chat_close(greta_chat* chat) { close_object(chat); }

greta_status greta_chat_add(greta_chat* chat, const greta_message* message) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(chat, "chat"));
    GRETA_TRY(need(message, "message"));
    jinja::Value value;
    GRETA_TRY(read_message(*message, &value));
    return chat->chat->add(std::move(value));
  });
}

uint32_t greta_chat_count(const greta_chat* chat) {
  return chat ? uint32_t(chat->chat->messages().size()) : 0;
}

greta_status greta_chat_get(greta_chat* chat, uint32_t index, greta_message* out_message) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(chat, "chat"));
    GRETA_TRY(need(out_message, "out_message"));
    const std::vector<jinja::Value>& messages = chat->chat->messages();
    if (index >= messages.size())
      return fail(Code::Argument, "there is no message %u: the conversation has %zu", index, messages.size());
    chat->role = messages[index]["role"].as_string();
    chat->content = messages[index]["content"].as_string();
    chat->json = to_json(messages[index]);
    *out_message = {chat->role.c_str(), chat->content.c_str(), chat->json.c_str()};
    return {};
  });
}

greta_status greta_chat_truncate(greta_chat* chat, uint32_t count) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(chat, "chat"));
    if (count > chat->chat->messages().size())
      return fail(Code::Argument, "cannot keep %u messages: the conversation has %zu", count,
                  chat->chat->messages().size());
    chat->chat->truncate(count);
    return {};
  });
}

greta_status greta_chat_render(greta_chat* chat, int add_answer, char* text, size_t capacity,
                               size_t* out_bytes) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(chat, "chat"));
    std::string prompt;
    GRETA_TRY(chat->chat->render(add_answer != 0, &prompt));
    return give_text(prompt, text, capacity, out_bytes);
  });
}

greta_status greta_chat_answer(greta_chat* chat, const greta_chat_answer_options* given,
                               greta_chat_result* out_result) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(chat, "chat"));
    GRETA_TRY(need_device(chat->session));
    greta_chat_answer_options o;
    GRETA_TRY(read_options(given, &o));
    std::vector<std::string_view> stops;
    GRETA_TRY(read_stops(o.stop_strings, o.stop_count, &stops));
    ChatAnswerOptions options;
    options.max_tokens = o.max_tokens;
    bool limited = false;
    GRETA_TRY(read_flag(o.ignore_end, "ignore_end", &options.ignore_end));
    GRETA_TRY(read_flag(o.limit_reasoning, "limit_reasoning", &limited));
    options.reasoning_tokens = limited ? int64_t(o.reasoning_tokens) : -1;
    options.stops = stops;
    if (out_result) GRETA_TRY(check_result(out_result));
    EventCall call{o.on_event, o.user, {}};
    ChatResult r;
    GRETA_TRY(chat->chat->answer(options, call.events(), &r));
    if (!out_result) return {};
    greta_chat_result result = {};
    result.end = greta_chat_end(r.end);
    result.prompt_tokens = r.prompt_tokens;
    result.reused_tokens = r.reused_tokens;
    result.generated_tokens = r.generated_tokens;
    result.reasoning_tokens = r.reasoning_tokens;
    result.open_reasoning = r.open_reasoning;
    result.forgotten_messages = r.forgotten_messages;
    result.prompt_ns = r.prompt_ns;
    result.generate_ns = r.generate_ns;
    return write_result(result, out_result);
  });
}
