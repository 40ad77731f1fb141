/* states MODEL: how far requests are, what is known before their first token, and why one is refused.
 * C99, POSIX threads and greta.h alone. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "greta.h"

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) return printf("line %d: %s (%s)\n", __LINE__, #condition, greta_error_text()), 1; \
  } while (0)

enum { kPlaces = 4, kContext = 256, kPrompt = 200 };

static greta_service* service;
static int32_t prompt[kContext + 44];

static greta_status add(size_t tokens, uint32_t max_tokens, greta_request** out) {
  greta_request_options options = {.struct_size = sizeof options, .tokens = prompt, .token_count = tokens};
  options.max_tokens = max_tokens, options.ignore_end = 1, options.prompt_events = 2;
  return greta_service_add(service, &options, out);
}

static greta_request_info describe(greta_request* request) {
  greta_request_info info = {.struct_size = sizeof info};
  if (greta_request_describe(request, &info)) info.struct_size = 0;
  return info;
}

/* While nothing runs the service, requests stand in the line. */
static int wait_in_line(void) {
  greta_request *requests[kPlaces], *more = NULL;
  greta_request_options strange = {.struct_size = sizeof strange, .prompt_events = 3};
  uint64_t length = 1, limit = 1;
  greta_error_numbers(&length, &limit);
  CHECK(length == 0 && limit == 0);
  for (uint32_t i = 0; i < kPlaces; ++i) {
    CHECK(add(5, 3, &requests[i]) == GRETA_OK);
    const greta_request_info info = describe(requests[i]);
    CHECK(info.state == GRETA_REQUEST_WAITING && info.before == i);
    CHECK(info.prompt_tokens == 5 && info.read_tokens == 0 && info.generated_tokens == 0);
  }
  CHECK(add(5, 3, &more) == GRETA_ERROR_BUSY);
  greta_error_numbers(&length, &limit);
  CHECK(length == kPlaces && limit == kPlaces);
  CHECK(strlen(greta_error_text()) > 0);
  greta_request_close(requests[0]);
  CHECK(add(kContext + 1, 3, &more) == GRETA_ERROR_FULL);
  greta_error_numbers(&length, &limit);
  CHECK(length == kContext + 1 && limit == kContext);
  greta_error_numbers(NULL, NULL);
  strange.tokens = prompt, strange.token_count = 5;
  CHECK(greta_service_add(service, &strange, &more) == GRETA_ERROR_ARGUMENT);
  greta_error_numbers(&length, &limit);
  CHECK(length == 0 && limit == 0);
  CHECK(greta_request_describe(NULL, NULL) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_request_describe(requests[1], NULL) == GRETA_ERROR_ARGUMENT);
  for (int i = 1; i < kPlaces; ++i) greta_request_close(requests[i]);
  return 0;
}

/* Places are free as soon as requests are closed, without a step between. */
static int come_and_go(void) {
  for (int round = 0; round < 100; ++round) {
    greta_request* requests[kPlaces];
    for (int i = 0; i < kPlaces; ++i) CHECK(add(5, 3, &requests[i]) == GRETA_OK);
    for (int i = 0; i < kPlaces; ++i) greta_request_close(requests[i]);
  }
  return 0;
}

static void* run(void* unused) {
  (void)unused;
  return greta_service_run(service) ? "greta_service_run failed" : NULL;
}

/* The service counts what has ended: here two requests that were read, and all those that were closed. */
static int count_ends(void) {
  greta_service_info info = {.struct_size = sizeof info};
  do {
    CHECK(greta_service_describe(service, &info) == GRETA_OK);
  } while (info.waiting + info.running); /* those that were closed end in the next step */
  CHECK(info.ended[GRETA_STOP_LENGTH] >= 2 && info.failed == 0); /* some may end before they are closed */
  CHECK(info.ended[GRETA_STOP_LENGTH] + info.ended[GRETA_STOP_CANCELLED] == 2 + kPlaces + 200 * kPlaces);
  CHECK(info.generated_tokens >= 2 * 5 && info.prompt_tokens >= 2 * kPrompt + 200 * kPlaces * 5);
  CHECK(info.steps > 0 && info.step_ns > 0 && info.host_ns > 0);
  return 0;
}

/* Reads a request to its end: progress, then the start, then the answer. */
static int read_request(uint32_t cached) {
  greta_request* request = NULL;
  greta_request_event event = {.struct_size = sizeof event};
  greta_request_result result = {.struct_size = sizeof result};
  uint32_t read = 0, pieces = 0, starts = 0, tokens = 0;
  CHECK(add(kPrompt, 5, &request) == GRETA_OK);
  do {
    CHECK(greta_request_next(request, UINT64_MAX, &event) == GRETA_OK);
    if (event.kind == GRETA_EVENT_PROGRESS) {
      CHECK(!starts && event.prompt_tokens == kPrompt);
      CHECK(event.read_tokens > read && event.read_tokens < kPrompt && event.cached_tokens == cached);
      read = event.read_tokens;
      ++pieces;
    } else if (event.kind == GRETA_EVENT_START) {
      CHECK(!tokens && event.token == -1 && event.bytes == 0);
      CHECK(event.prompt_tokens == kPrompt && event.read_tokens == kPrompt && event.cached_tokens == cached);
      ++starts;
    } else {
      tokens += event.token >= 0;
    }
  } while (event.kind != GRETA_EVENT_END);
  CHECK(starts == 1 && tokens == 5);
  CHECK(cached ? pieces == 0 : pieces > 0);
  CHECK(greta_request_finish(request, &result) == GRETA_OK && result.cached_tokens == cached);
  const greta_request_info info = describe(request);
  CHECK(info.state == GRETA_REQUEST_ENDED && info.unread_events == 0);
  CHECK(info.prompt_tokens == kPrompt && info.cached_tokens == cached && info.generated_tokens == 5);
  greta_request_close(request);
  return 0;
}

int main(int argc, char** argv) {
  greta_runtime* runtime = NULL;
  greta_model* model = NULL;
  greta_runtime_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = kContext, .cache_tokens = 2048};
  greta_service_options serve = {.struct_size = sizeof serve, .max_requests = kPlaces, .executor = &sizes};
  pthread_t thread;
  void* wrong = NULL;
  sizes.step_tokens = 64;
  for (int i = 0; i < kContext + 44; ++i) prompt[i] = 100 + i * 37 % 1000;
  CHECK(greta_runtime_open(&on_cpu, &runtime) == GRETA_OK);
  CHECK(greta_model_open(runtime, &load, &model) == GRETA_OK);
  CHECK(greta_service_open(model, &serve, &service) == GRETA_OK);
  if (wait_in_line() || come_and_go()) return 1;
  CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
  const int failed = read_request(0) || read_request(192) || come_and_go() || count_ends();
  greta_service_stop(service);
  pthread_join(thread, &wrong);
  if (wrong) puts(wrong);
  greta_service_close(service), greta_model_close(model), greta_runtime_close(runtime);
  return failed || wrong;
}
