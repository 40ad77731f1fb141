// The functions of greta.h for chat templates.
#include <ctime>

#include "api/handles.h"

using namespace greta;
using jinja::Value;

// Makes one object of the message's JSON, role and content.
static Status read_message(const greta_message& message, size_t number, Value* out) {
  Value made = Value::dict();
  if (message.json)
    GRETA_TRY(within(jinja::parse_json(message.json, &made), "the JSON of message %zu", number));
  if (!made.is_dict())
    return fail(Code::Argument, "the JSON of message %zu: expected an object, not %s", number,
                made.type_name());
  if (message.role) made.set("role", message.role);
  if (message.content) made.set("content", message.content);
  if (!made.find("role")) return fail(Code::Argument, "message %zu has no role", number);
  if (!made.find("content")) {
    if (!message.json) return fail(Code::Argument, "message %zu has no content", number);
    made.set("content", nullptr);
  }
  *out = std::move(made);
  return {};
}

greta_status greta_tokenizer_chat(const greta_tokenizer* tokenizer, const greta_message* messages,
                                  size_t count, int add_answer, char* text, size_t capacity,
                                  size_t* out_bytes) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(tokenizer, "tokenizer"));
    if (count) GRETA_TRY(need(messages, "messages"));
    GRETA_TRY(check_message_count(count));
    ChatInput input;
    input.messages = Value::list();
    for (size_t i = 0; i < count; ++i) {
      Value message;
      GRETA_TRY(read_message(messages[i], i, &message));
      input.messages.push(std::move(message));
    }
    input.add_generation_prompt = add_answer != 0;
    input.now_s = int64_t(time(nullptr));
    std::string prompt;
    GRETA_TRY(tokenizer->chat.render(input, {}, &prompt));
    return give_text(prompt, text, capacity, out_bytes);
  });
}

const char* greta_tokenizer_template(const greta_tokenizer* tokenizer) {
  if (!tokenizer || tokenizer->chat.is_fallback()) return "";
  return tokenizer->chat.text().c_str();
}

static Status read_context(const char* json, size_t bytes, Value* out) {
  if (bytes) GRETA_TRY(need(json, "context_json"));
  Value context = Value::dict();
  if (bytes) GRETA_TRY(within(jinja::parse_json({json, bytes}, &context), "the context"));
  if (!context.is_dict())
    return fail(Code::Argument, "the context: expected an object, not %s", context.type_name());
  *out = std::move(context);
  return {};
}

greta_status greta_tokenizer_render(const greta_tokenizer* tokenizer, const char* context_json,
                                    size_t context_bytes, int64_t now_s, char* text, size_t capacity,
                                    size_t* out_bytes) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(tokenizer, "tokenizer"));
    Value context;
    GRETA_TRY(read_context(context_json, context_bytes, &context));
    std::string made;
    GRETA_TRY(tokenizer->chat.render_context(context, now_s, {}, &made));
    return give_text(made, text, capacity, out_bytes);
  });
}

greta_status greta_template_render(const char* template_text, size_t template_bytes, const char* context_json,
                                   size_t context_bytes, int64_t now_s, char* text, size_t capacity,
                                   size_t* out_bytes) {
  return fenced([&]() -> Status {
    if (template_bytes) GRETA_TRY(need(template_text, "template_text"));
    Value context;
    GRETA_TRY(read_context(context_json, context_bytes, &context));
    jinja::Template form;
    GRETA_TRY(within(form.parse({template_text, template_bytes}), "the template"));
    std::string made;
    GRETA_TRY(within(form.render(context, now_s, {}, &made), "the template"));
    return give_text(made, text, capacity, out_bytes);
  });
}
