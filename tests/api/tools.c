/* tools MODEL: which tools an answer calls is held, whatever the model would write. C99 and greta.h alone. */
#include <stdio.h>
#include <string.h>

#include "greta.h"

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) return printf("line %d: %s (%s)\n", __LINE__, #condition, greta_error_text()), 1; \
  } while (0)

static const char kTemplate[] =
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{% for c in m.tool_calls or [] %}"
    "<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n"
    "</tool_call>{% endfor %}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% if think %}<think>\n{% endif %}{% endif %}"
    "{# <think> </think> #}";
static const char kTools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {\"city\": {\"enum\": [\"Paris\", \"Rome\"]}}, \"required\": [\"city\"]}}},"
    " {\"type\": \"function\", \"function\": {\"name\": \"stop\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {\"now\": {\"type\": \"boolean\"}}, \"required\": [\"now\"]}}}]";
/* This pattern cannot be held. */
static const char kStrange[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": \"object\", "
    "\"properties\": {\"a\": {\"type\": \"string\", \"pattern\": \"(?<=x)y\"}}, \"required\": [\"a\"]}}}]";

static greta_service* service;
static char said[4096], called[4096];
static uint32_t calls;
static greta_request_result result;

/* Asks, and notes what comes. */
static greta_status ask(greta_chat_options* chat, const greta_request_options* more) {
  const greta_message question = {"user", "Will it rain?", NULL};
  greta_request_options options = {.struct_size = sizeof options, .messages = &question, .message_count = 1};
  greta_request_event event = {.struct_size = sizeof event};
  greta_request* request = NULL;
  options.chat = chat, options.max_tokens = 120;
  if (more) options.sampling = more->sampling, options.limit_reasoning = more->limit_reasoning;
  if (more) options.reasoning_tokens = more->reasoning_tokens;
  said[0] = called[0] = 0, calls = 0;
  const greta_status added = greta_service_add(service, &options, &request);
  if (added) return added;
  while (!greta_request_next(request, UINT64_MAX, &event) && event.kind != GRETA_EVENT_END) {
    if (event.kind == GRETA_EVENT_TEXT) strncat(said, event.text, sizeof said - strlen(said) - 1);
    if (event.kind != GRETA_EVENT_TOOL_CALL) continue;
    ++calls;
    snprintf(called, sizeof called, "%s %s", event.name, event.arguments);
  }
  result.struct_size = sizeof result;
  const greta_status ended = greta_request_finish(request, &result);
  greta_request_close(request);
  return ended;
}

static int is_weather(void) {
  return !strcmp(called, "weather {\"city\": \"Paris\"}") || !strcmp(called, "weather {\"city\": \"Rome\"}");
}

static int hold_calls(greta_chat_options chat) {
  chat.tool_choice = "weather", chat.one_call = 1;
  CHECK(ask(&chat, NULL) == GRETA_OK);
  CHECK(calls == 1 && is_weather() && !said[0] && result.reason == GRETA_STOP_END);
  chat.tool_choice = "required";
  CHECK(ask(&chat, NULL) == GRETA_OK && calls == 1 && result.tool_calls == 1);
  CHECK(is_weather() || !strncmp(called, "stop {\"now\": ", 13));
  chat.tool_choice = "none";
  CHECK(ask(&chat, NULL) == GRETA_OK && calls == 0 && said[0]);
  chat.tool_choice = "auto";
  CHECK(ask(&chat, NULL) == GRETA_OK && (calls || said[0]));
  chat.tool_choice = NULL;
  CHECK(ask(&chat, NULL) == GRETA_OK && (calls || said[0]));
  return 0;
}

/* The call comes behind the reasoning, and beside a schema for what is said. */
static int hold_behind_reasoning(greta_chat_options chat) {
  greta_sampling_options sampling = {.struct_size = sizeof sampling, .json_schema = "{\"enum\": [17]}"};
  greta_request_options more = {.struct_size = sizeof more, .limit_reasoning = 1, .reasoning_tokens = 5};
  chat.tool_choice = "weather", chat.one_call = 1, chat.arguments = "{\"think\": true}";
  CHECK(ask(&chat, &more) == GRETA_OK && calls == 1 && is_weather() && result.reasoning_tokens == 5);
  more.sampling = &sampling;
  CHECK(ask(&chat, &more) == GRETA_OK && calls == 1 && is_weather());
  chat.tool_choice = "auto";
  CHECK(ask(&chat, &more) == GRETA_OK && (calls == 1 || !strcmp(said, "17")));
  chat.tool_choice = "none";
  CHECK(ask(&chat, &more) == GRETA_OK && !strcmp(said, "17"));
  return 0;
}

/* The call comes while it is written: its id and name, pieces of its arguments, and all of it. */
static int come_in_pieces(greta_chat_options chat) {
  const greta_message question = {"user", "Will it rain?", NULL};
  greta_request_options options = {.struct_size = sizeof options, .messages = &question, .message_count = 1};
  greta_request_event event = {.struct_size = sizeof event};
  greta_request* request = NULL;
  char id[64] = "", joined[256] = "";
  int pieces = 0, whole = 0;
  chat.tool_choice = "weather", chat.one_call = 1;
  options.chat = &chat, options.max_tokens = 120, options.call_pieces = 1;
  CHECK(greta_service_add(service, &options, &request) == GRETA_OK);
  while (!greta_request_next(request, UINT64_MAX, &event) && event.kind != GRETA_EVENT_END) {
    if (event.kind == GRETA_EVENT_CALL_START) {
      CHECK(!id[0] && !strcmp(event.name, "weather") && event.bytes == 0);
      snprintf(id, sizeof id, "%s", event.id);
    } else if (event.kind == GRETA_EVENT_CALL_PIECE) {
      CHECK(id[0] && !whole && event.bytes > 0);
      strncat(joined, event.text, sizeof joined - strlen(joined) - 1);
      ++pieces;
    } else if (event.kind == GRETA_EVENT_TOOL_CALL) {
      CHECK(!strcmp(event.id, id) && !strcmp(event.name, "weather") && !strcmp(event.arguments, joined));
      ++whole;
    }
  }
  CHECK(pieces > 2 && whole == 1);
  greta_request_close(request);
  options.call_pieces = 2;
  CHECK(greta_service_add(service, &options, &request) == GRETA_ERROR_ARGUMENT);
  return 0;
}

static int refuse(greta_chat_options chat) {
  chat.tool_choice = "sun";
  CHECK(ask(&chat, NULL) == GRETA_ERROR_ARGUMENT && strstr(greta_error_text(), "sun"));
  chat.tool_choice = "required", chat.tools = NULL;
  CHECK(ask(&chat, NULL) == GRETA_ERROR_ARGUMENT && strstr(greta_error_text(), "no tools"));
  chat.tools = kTools, chat.one_call = 2;
  CHECK(ask(&chat, NULL) == GRETA_ERROR_ARGUMENT && strstr(greta_error_text(), "one_call"));
  chat.one_call = 1, chat.tools = kStrange;
  CHECK(ask(&chat, NULL) == GRETA_OK);
  chat.strict_tools = 1;
  CHECK(ask(&chat, NULL) == GRETA_ERROR_UNSUPPORTED && strstr(greta_error_text(), "\"f\""));
  chat.strict_tools = 0, chat.tools = kTools;
  chat.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}<tool_call>";
  CHECK(ask(&chat, NULL) == GRETA_ERROR_UNSUPPORTED && strstr(greta_error_text(), "template"));
  return 0;
}

int main(int argc, char** argv) {
  greta_runtime* runtime = NULL;
  greta_model* model = NULL;
  greta_runtime_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = 256, .cache_tokens = 2048};
  greta_service_options serve = {.struct_size = sizeof serve, .own_thread = 1, .executor = &sizes};
  greta_chat_options chat = {.struct_size = sizeof chat, .chat_template = kTemplate, .tools = kTools};
  CHECK(greta_runtime_open(&on_cpu, &runtime) == GRETA_OK);
  CHECK(greta_model_open(runtime, &load, &model) == GRETA_OK);
  CHECK(greta_service_open(model, &serve, &service) == GRETA_OK);
  if (hold_calls(chat) || hold_behind_reasoning(chat) || come_in_pieces(chat) || refuse(chat)) return 1;
  greta_service_close(service), greta_model_close(model), greta_runtime_close(runtime);
  return 0;
}
