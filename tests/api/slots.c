/* slots MODEL: the tokens of a request that has ended, and its pages of the prefix cache: written to memory,
 * forgotten, and brought back. C99 and greta.h alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "greta.h"

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) return printf("line %d: %s (%s)\n", __LINE__, #condition, greta_error_text()), 1; \
  } while (0)

enum { kPrompt = 150, kAnswer = 8, kPage = 64 };

static greta_service* service;
static int32_t prompt[kPrompt];
static int32_t text[kPrompt + kAnswer]; /* the prompt and its answer */

static struct {
  char* bytes;
  size_t count;
} saved;

static int take_bytes(void* user, const void* bytes, uint64_t count) {
  char* more = realloc(saved.bytes, saved.count + count);
  (void)user;
  if (!more) return 1;
  memcpy(more + saved.count, bytes, count);
  saved.bytes = more, saved.count += count;
  return 0;
}

static greta_request_options about(const int32_t* tokens, size_t count) {
  greta_request_options options = {.struct_size = sizeof options, .tokens = tokens, .token_count = count};
  options.max_tokens = kAnswer, options.ignore_end = 1;
  return options;
}

/* Reads a request to its end, and leaves it open. */
static greta_request* run(const greta_request_options* options, greta_request_result* result) {
  greta_request* request = NULL;
  greta_request_event event = {.struct_size = sizeof event};
  result->struct_size = sizeof *result;
  if (greta_service_add(service, options, &request)) return NULL;
  do {
    if (greta_request_next(request, UINT64_MAX, &event)) return NULL;
  } while (event.kind != GRETA_EVENT_END);
  return greta_request_finish(request, result) ? NULL : request;
}

static int take_cached(void* user, const greta_prompt* made) {
  *(uint32_t*)user = made->cached_tokens;
  return 0;
}

/* How many tokens of the text the prefix cache has now. */
static uint32_t cached(uint64_t salt) {
  greta_request_options options = about(text, kPrompt + kAnswer);
  uint32_t count = UINT32_MAX;
  options.salt = salt;
  return greta_service_prompt(service, &options, take_cached, &count) ? UINT32_MAX : count;
}

static size_t forget(size_t tokens, uint64_t salt) {
  size_t count = 0;
  return greta_service_forget(service, text, tokens, salt, &count) ? SIZE_MAX : count;
}

static int write_text(void) {
  greta_request_options options = about(prompt, kPrompt);
  greta_request_result result;
  greta_request* request = NULL;
  const int32_t* tokens = NULL;
  size_t count = 0;
  CHECK(greta_service_add(service, &options, &request) == GRETA_OK);
  CHECK(greta_request_tokens(request, &tokens, &count) == GRETA_ERROR_ARGUMENT); /* nothing was read */
  greta_request_close(request);
  request = run(&options, &result);
  CHECK(request && greta_request_tokens(request, &tokens, &count) == GRETA_OK);
  CHECK(count == kPrompt + kAnswer && memcmp(tokens, prompt, sizeof prompt) == 0);
  memcpy(text, tokens, sizeof text);
  greta_request_close(request);
  CHECK(cached(0) == 2 * kPage);
  return 0;
}

static int save_text(void) {
  greta_request_options options = about(text, kPrompt + kAnswer);
  greta_request_result result;
  greta_request* request = NULL;
  options.no_answer = options.keep_state = 1;
  request = run(&options, &result);
  CHECK(request && result.cached_tokens == 2 * kPage);
  CHECK(greta_request_save(request, take_bytes, NULL) == GRETA_OK);
  CHECK(saved.count == greta_request_state_bytes(request));
  greta_request_close(request);
  return 0;
}

/* Gives the saved state to the cache, for the requests of a salt. */
static int restore_text(uint64_t salt, uint32_t share) {
  greta_source source = {.struct_size = sizeof source, .memory = saved.bytes, .memory_bytes = saved.count};
  greta_request_options options = about(NULL, 0);
  greta_request_result result;
  greta_request* request = NULL;
  options.state = &source, options.no_answer = 1, options.salt = salt, options.share_state = share;
  request = run(&options, &result);
  CHECK(request && result.prompt_tokens == kPrompt + kAnswer);
  CHECK(result.cached_tokens == kPrompt + kAnswer - 1);
  greta_request_close(request);
  return 0;
}

/* The answer is the same, and its prompt comes from the cache. */
static int answer_again(uint64_t salt) {
  greta_request_options options = about(prompt, kPrompt);
  greta_request_result result;
  greta_request* request = NULL;
  const int32_t* tokens = NULL;
  size_t count = 0;
  options.salt = salt;
  request = run(&options, &result);
  CHECK(request && result.cached_tokens == 2 * kPage);
  CHECK(greta_request_tokens(request, &tokens, &count) == GRETA_OK);
  CHECK(count == kPrompt + kAnswer && memcmp(tokens, text, sizeof text) == 0);
  greta_request_close(request);
  return 0;
}

static int forget_and_restore(void) {
  greta_service_info before = {.struct_size = sizeof before}, after = before;
  CHECK(greta_service_describe(service, &before) == GRETA_OK);
  CHECK(forget(kPrompt, 5) == 0 && cached(0) == 2 * kPage); /* another salt */
  CHECK(forget(kPrompt, 0) == 2 * kPage && cached(0) == 0 && forget(kPrompt, 0) == 0);
  CHECK(greta_service_forget(service, NULL, 0, 0, NULL) == GRETA_OK);
  CHECK(restore_text(0, 0) == 0 && cached(0) == 0); /* nobody gets it */
  CHECK(restore_text(0, 1) == 0 && cached(0) == 2 * kPage && answer_again(0) == 0);
  CHECK(restore_text(0, 1) == 0 && cached(0) == 2 * kPage); /* where its pages are there */
  CHECK(restore_text(5, 1) == 0 && cached(5) == 2 * kPage && answer_again(5) == 0);
  CHECK(forget(kPrompt, 5) == 2 * kPage && cached(5) == 0 && cached(0) == 2 * kPage);
  CHECK(greta_service_describe(service, &after) == GRETA_OK);
  CHECK(after.free_pages + after.cached_pages == before.free_pages + before.cached_pages);
  return 0;
}

/* A page with which another text goes on stays. */
static int forget_what_is_shared(void) {
  int32_t other[kPrompt];
  greta_request_options options = about(other, kPrompt);
  greta_request_result result;
  greta_request* request = NULL;
  memcpy(other, prompt, sizeof other);
  other[kPage] += 1;
  request = run(&options, &result);
  CHECK(request && result.cached_tokens == kPage);
  greta_request_close(request);
  CHECK(forget(kPrompt, 0) == kPage && cached(0) == kPage);
  return 0;
}

static int refuse(void) {
  greta_request_options options = about(prompt, kPrompt);
  greta_request* request = NULL;
  size_t count = 0;
  options.share_state = 1;
  CHECK(greta_service_add(service, &options, &request) == GRETA_ERROR_ARGUMENT && !request);
  options.share_state = 0, options.token_count = 0;
  CHECK(greta_service_add(service, &options, &request) == GRETA_ERROR_ARGUMENT && !request);
  CHECK(greta_service_forget(service, NULL, 1, 0, &count) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_service_forget(NULL, text, 1, 0, &count) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_request_tokens(NULL, NULL, &count) == GRETA_ERROR_ARGUMENT);
  return 0;
}

int main(int argc, char** argv) {
  greta_runtime* runtime = NULL;
  greta_model* model = NULL;
  greta_runtime_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu", .exact = 1};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = 256, .cache_tokens = 2048};
  greta_service_options serve = {.struct_size = sizeof serve, .own_thread = 1, .executor = &sizes};
  for (int i = 0; i < kPrompt; ++i) prompt[i] = 100 + i * 37 % 1000;
  CHECK(greta_runtime_open(&on_cpu, &runtime) == GRETA_OK);
  CHECK(greta_model_open(runtime, &load, &model) == GRETA_OK);
  CHECK(greta_service_open(model, &serve, &service) == GRETA_OK);
  const int failed =
      write_text() || save_text() || forget_and_restore() || forget_what_is_shared() || refuse();
  greta_service_close(service), greta_model_close(model), greta_runtime_close(runtime);
  free(saved.bytes);
  return failed;
}
