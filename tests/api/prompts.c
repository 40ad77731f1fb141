/* prompts MODEL: what a request would feed, answers that go on, messages of the system, and single tokens.
 * C99 and greta.h alone. */
#include <stdio.h>
#include <string.h>

#include "greta.h"

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) return printf("line %d: %s (%s)\n", __LINE__, #condition, greta_error_text()), 1; \
  } while (0)

/* Refuses a second message of the system, and trims what is said. */
static const char kTemplate[] =
    "{% for m in messages %}"
    "{% if m.role == 'system' and not loop.first %}{{ raise_exception('system comes first') }}{% endif %}"
    "{{ '<' ~ m.role ~ '>' ~ (m.content | trim) ~ '</>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}";

static greta_model* model;
static greta_service* service;

/* What on_prompt below has received. */
static struct {
  char text[8192];
  size_t bytes, tokens;
  uint32_t cached;
  int calls;
} got;

static int take_prompt(void* user, const greta_prompt* prompt) {
  got.bytes = prompt->bytes;
  got.tokens = prompt->token_count;
  got.cached = prompt->cached_tokens;
  snprintf(got.text, sizeof got.text, "%s", prompt->text);
  ++got.calls;
  return user != NULL;
}

static greta_chat_options plain(void) {
  greta_chat_options chat = {.struct_size = sizeof chat, .chat_template = kTemplate};
  return chat;
}

static greta_request_options about(const greta_message* messages, size_t count,
                                   const greta_chat_options* chat) {
  greta_request_options options = {.struct_size = sizeof options, .messages = messages, .max_tokens = 6};
  options.message_count = count, options.chat = chat, options.ignore_end = 1;
  return options;
}

static greta_status ask(const greta_request_options* options) {
  return greta_service_prompt(service, options, take_prompt, NULL);
}

/* Runs a request. */
static greta_status run(const greta_request_options* options, char* answer, greta_request_result* result) {
  greta_request* request = NULL;
  greta_request_event event = {.struct_size = sizeof event};
  const greta_status added = greta_service_add(service, options, &request);
  if (added) return added;
  answer[0] = 0;
  while (!greta_request_next(request, UINT64_MAX, &event) && event.kind != GRETA_EVENT_END)
    strncat(answer, event.text, 511 - strlen(answer));
  result->struct_size = sizeof *result;
  const greta_status ended = greta_request_finish(request, result);
  greta_request_close(request);
  return ended;
}

static int say_what_is_fed(void) {
  char long_text[2000], answer[512];
  const greta_message question = {"user", " Tell me a story. ", NULL};
  greta_message long_question = {"user", long_text, NULL};
  const greta_chat_options chat = plain();
  greta_request_options options = about(&question, 1, &chat);
  greta_request_result result;
  CHECK(ask(&options) == GRETA_OK);
  CHECK(!strcmp(got.text, "<user>Tell me a story.</>\n<assistant>") && got.bytes == strlen(got.text));
  CHECK(run(&options, answer, &result) == GRETA_OK && result.prompt_tokens == got.tokens);
  memset(long_text, 0, sizeof long_text);
  for (int i = 0; i < 80; ++i) strcat(long_text, " a tale");
  options.messages = &long_question;
  CHECK(ask(&options) == GRETA_OK && got.tokens > 128 && got.cached == 0);
  CHECK(run(&options, answer, &result) == GRETA_OK && result.cached_tokens == 0);
  CHECK(ask(&options) == GRETA_OK && got.cached >= 128 && got.cached % 64 == 0);
  CHECK(run(&options, answer, &result) == GRETA_OK && result.cached_tokens == got.cached);
  options.no_cache = 1;
  CHECK(ask(&options) == GRETA_OK && got.cached == 0);
  options.no_cache = 0, options.salt = 7;
  CHECK(ask(&options) == GRETA_OK && got.cached == 0);
  for (int i = 0; i < 100; ++i) strcat(long_text, " a tale");
  CHECK(ask(&options) == GRETA_OK && got.tokens > 256); /* longer than the context */
  CHECK(run(&options, answer, &result) == GRETA_ERROR_FULL);
  CHECK(greta_service_prompt(service, &options, take_prompt, &options) == GRETA_ERROR_CANCELLED);
  CHECK(greta_service_prompt(service, &options, NULL, NULL) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_service_prompt(service, NULL, take_prompt, NULL) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_service_prompt(NULL, &options, take_prompt, NULL) == GRETA_ERROR_ARGUMENT);
  return 0;
}

/* Where nothing runs the service, the answer comes as well. */
static int say_so_at_rest(void) {
  const greta_message question = {"user", "Tell me a story.", NULL};
  const greta_chat_options chat = plain();
  const greta_request_options options = about(&question, 1, &chat);
  const int before = got.calls;
  greta_service_stop(service);
  CHECK(ask(&options) == GRETA_OK && got.calls == before + 1);
  return 0;
}

static int join_messages_of_the_system(void) {
  const greta_message messages[] = {
      {"system", "Be kind.", NULL},
      {"user", "Hello.", NULL},
      {"developer", NULL, "{\"content\": [{\"type\": \"text\", \"text\": \"Be brief.\"}]}"},
      {"system", "", NULL},
      {"system", "Rhyme.", NULL}};
  greta_chat_options chat = plain();
  greta_request_options options = about(messages, 5, &chat);
  CHECK(ask(&options) == GRETA_ERROR_ARGUMENT); /* the last one is not the user's */
  options.message_count = 2;
  CHECK(ask(&options) == GRETA_OK);
  const greta_message later[] = {messages[0], messages[2], messages[4], messages[1]};
  options.messages = later, options.message_count = 4;
  CHECK(ask(&options) == GRETA_ERROR_ARGUMENT && strstr(greta_error_text(), "system comes first"));
  chat.join_system = 1;
  CHECK(ask(&options) == GRETA_OK);
  CHECK(!strcmp(got.text, "<system>Be kind.\n\nBe brief.\n\nRhyme.</>\n<user>Hello.</>\n<assistant>"));
  options.messages = messages; /* one at the end goes to the beginning, and leaves the user's message last */
  options.message_count = 3;
  CHECK(ask(&options) == GRETA_OK);
  CHECK(!strcmp(got.text, "<system>Be kind.\n\nBe brief.</>\n<user>Hello.</>\n<assistant>"));
  options.messages = messages + 2; /* none but the system's */
  CHECK(ask(&options) == GRETA_ERROR_ARGUMENT && strstr(greta_error_text(), "nothing to answer"));
  options.messages = messages + 1, options.message_count = 1;
  CHECK(ask(&options) == GRETA_OK && !strcmp(got.text, "<user>Hello.</>\n<assistant>"));
  chat.join_system = 2;
  CHECK(ask(&options) == GRETA_ERROR_ARGUMENT && strstr(greta_error_text(), "join_system"));
  return 0;
}

/* An answer in two pieces is the answer in one. */
static int go_on_with_an_answer(void) {
  char whole[512], rest[512], begun[1024];
  greta_chat_options chat = plain();
  greta_message messages[] = {{"user", "Tell me a story.", NULL}, {"assistant", "Once upon a time", NULL}};
  greta_request_options options = about(messages, 2, &chat);
  greta_request_result result;
  CHECK(ask(&options) == GRETA_ERROR_ARGUMENT && strstr(greta_error_text(), "nothing to answer"));
  chat.continue_answer = 1;
  CHECK(ask(&options) == GRETA_OK);
  CHECK(!strcmp(got.text, "<user>Tell me a story.</>\n<assistant>Once upon a time"));
  options.max_tokens = 12;
  CHECK(run(&options, whole, &result) == GRETA_OK && strlen(whole) > 0);
  options.max_tokens = 4;
  CHECK(run(&options, rest, &result) == GRETA_OK && !strncmp(whole, rest, strlen(rest)));
  snprintf(begun, sizeof begun, "Once upon a time%s", rest);
  messages[1].content = begun, options.max_tokens = 8;
  CHECK(run(&options, rest, &result) == GRETA_OK);
  CHECK(!strcmp(whole + strlen(begun) - strlen("Once upon a time"), rest));
  messages[1].content = " \n";
  CHECK(ask(&options) == GRETA_ERROR_ARGUMENT && strstr(greta_error_text(), "has no text"));
  options.message_count = 1;
  CHECK(ask(&options) == GRETA_ERROR_ARGUMENT && strstr(greta_error_text(), "nothing to continue"));
  chat.chat_template = "{{ messages[0].content }}";
  messages[1].content = "Unwritten";
  options.message_count = 2;
  CHECK(ask(&options) == GRETA_ERROR_UNSUPPORTED);
  return 0;
}

static int tell_of_tokens(void) {
  const greta_tokenizer* tokenizer = greta_model_tokenizer(model);
  const int32_t bos = greta_tokenizer_bos(tokenizer);
  char text[64] = "", decoded[64];
  size_t bytes = 0, plain_bytes = 0;
  greta_token_kind kind = GRETA_TOKEN_UNDEFINED;
  int32_t word[4];
  size_t count = 0;
  CHECK(greta_tokenizer_decode(tokenizer, &bos, 1, decoded, sizeof decoded, &bytes) == GRETA_OK &&
        bytes == 0);
  CHECK(greta_tokenizer_token(tokenizer, bos, text, sizeof text, &bytes, &kind) == GRETA_OK);
  CHECK(bytes > 0 && bytes == strlen(text) && kind == GRETA_TOKEN_CONTROL);
  CHECK(greta_tokenizer_encode(tokenizer, text, bytes, GRETA_ENCODE_SPECIAL, word, 4, &count) == GRETA_OK);
  CHECK(count == 1 && word[0] == bos);
  CHECK(greta_tokenizer_encode(tokenizer, " king", 5, 0, word, 4, &count) == GRETA_OK && count > 0);
  CHECK(greta_tokenizer_token(tokenizer, word[0], text, sizeof text, &bytes, NULL) == GRETA_OK);
  CHECK(greta_tokenizer_decode(tokenizer, word, 1, decoded, sizeof decoded, &plain_bytes) == GRETA_OK);
  CHECK(bytes == plain_bytes && !memcmp(text, decoded, bytes));
  CHECK(greta_tokenizer_token(tokenizer, -1, text, 1, &bytes, NULL) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_tokenizer_token(tokenizer, (int32_t)greta_tokenizer_size(tokenizer), NULL, 0, &bytes, NULL) ==
        GRETA_ERROR_ARGUMENT);
  for (int which = -1; which < 9; ++which)
    CHECK(greta_tokenizer_fill_token(tokenizer, (greta_fill_token)which) == -1);
  CHECK(greta_tokenizer_fill_token(NULL, GRETA_FILL_PREFIX) == -1);
  return 0;
}

int main(int argc, char** argv) {
  greta_runtime* runtime = NULL;
  greta_runtime_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = 256, .cache_tokens = 2048};
  greta_service_options serve = {.struct_size = sizeof serve, .own_thread = 1, .executor = &sizes};
  on_cpu.exact = 1;
  CHECK(greta_runtime_open(&on_cpu, &runtime) == GRETA_OK);
  CHECK(greta_model_open(runtime, &load, &model) == GRETA_OK);
  CHECK(greta_service_open(model, &serve, &service) == GRETA_OK);
  if (say_what_is_fed() || join_messages_of_the_system() || go_on_with_an_answer() || say_so_at_rest() ||
      tell_of_tokens())
    return 1;
  greta_service_close(service), greta_model_close(model), greta_runtime_close(runtime);
  return 0;
}
