/* ending MODEL: threads that are cancelled while they are in the library. They end in a wait or after the
 * call, and what they used goes on. C99, POSIX threads and greta.h alone. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "greta.h"

enum { kMostTokens = 64, kWritten = 12 };

static greta_runtime* runtime;
static greta_model* model;
static greta_session* session;
static greta_service* service;
static int32_t prompt[kMostTokens];
static size_t prompt_tokens;

static void stop(const char* what) {
  fprintf(stderr, "%s; %s\n", what, greta_error_text());
  exit(1);
}
static void need(int holds, const char* what) {
  if (!holds) stop(what);
}

static void* result_of(pthread_t thread) {
  void* result = NULL;
  need(pthread_join(thread, &result) == 0, "join");
  return result;
}
static pthread_t start(void* (*run)(void*), void* argument) {
  pthread_t thread;
  need(pthread_create(&thread, NULL, run, argument) == 0, "create");
  return thread;
}
static void moment(void) {
  const struct timespec time = {0, 20 * 1000 * 1000};
  nanosleep(&time, NULL);
}

/* ---- a session ------------------------------------------------------------------------------------- */

typedef struct Writing {
  int cancel_before, cancel_within, came_back, calls;
  char text[4096];
} Writing;

static int on_token(void* user, int32_t token, const char* text, size_t bytes) {
  Writing* w = user;
  (void)token;
  if (strlen(w->text) + bytes < sizeof w->text) strncat(w->text, text, bytes);
  if (++w->calls == w->cancel_within) pthread_cancel(pthread_self()), moment();
  return 0;
}

/* A cancellation takes effect after the call. */
static void* write_text(void* argument) {
  Writing* w = argument;
  greta_generate_options options = {.struct_size = sizeof options,
                                    .max_tokens = kWritten,
                                    .ignore_end = 1,
                                    .on_token = on_token,
                                    .user = w};
  need(!greta_session_truncate(session, 0), "truncate");
  if (w->cancel_before) pthread_cancel(pthread_self());
  const int failed = greta_session_generate(session, prompt, prompt_tokens, &options, NULL);
  w->came_back = !failed;
  pthread_testcancel();
  return NULL;
}

static void in_calls(void) {
  Writing whole = {0}, before = {.cancel_before = 1}, within = {.cancel_within = 4}, again = {0};
  need(!result_of(start(write_text, &whole)) && whole.calls >= kWritten, "a text");
  need(result_of(start(write_text, &before)) == PTHREAD_CANCELED && before.came_back, "cancelled before it");
  need(result_of(start(write_text, &within)) == PTHREAD_CANCELED && within.came_back, "cancelled within it");
  need(!result_of(start(write_text, &again)), "a text afterwards");
  need(
      !strcmp(before.text, whole.text) && !strcmp(within.text, whole.text) && !strcmp(again.text, whole.text),
      "the same text");
}

/* ---- a service ----------------------------------------------------------------------------------------- */

static void* run(void* unused) {
  (void)unused;
  need(!greta_service_run(service), "run");
  return NULL;
}

static void* read_one(void* request) {
  greta_request_event event = {.struct_size = sizeof event};
  need(!greta_request_next(request, UINT64_MAX, &event), "next");
  return NULL;
}

static void* close_service(void* unused) {
  (void)unused;
  pthread_cancel(pthread_self());
  greta_service_close(service);
  service = NULL;
  pthread_testcancel();
  return NULL;
}

static void in_waits(void) {
  greta_request_options ask = {.struct_size = sizeof ask,
                               .tokens = prompt,
                               .token_count = prompt_tokens,
                               .max_tokens = kWritten,
                               .ignore_end = 1};
  greta_request_event event = {.struct_size = sizeof event};
  greta_request* request = NULL;
  pthread_t thread;
  int tokens = 0;
  need(!greta_service_add(service, &ask, &request), "add");
  thread = start(read_one, request);
  moment(); /* so that it waits, most likely; the test is right either way */
  need(!pthread_cancel(thread) && result_of(thread) == PTHREAD_CANCELED, "a reader is cancelled");

  thread = start(run, NULL);
  do {
    need(!greta_request_next(request, UINT64_MAX, &event), "next");
    tokens += event.kind == GRETA_EVENT_TEXT && event.token >= 0;
  } while (event.kind != GRETA_EVENT_END);
  need(tokens == kWritten && !greta_request_finish(request, NULL), "a request is read after that");
  greta_request_close(request);
  moment();
  need(!pthread_cancel(thread) && result_of(thread) == PTHREAD_CANCELED, "who runs the service is cancelled");

  need(!greta_service_add(service, &ask, &request), "add");
  thread = start(run, NULL); /* another thread goes on */
  do need(!greta_request_next(request, UINT64_MAX, &event), "next");
  while (event.kind != GRETA_EVENT_END);
  need(!greta_request_finish(request, NULL), "a request of the other thread");
  greta_request_close(request);
  greta_service_stop(service);
  need(!result_of(thread), "the other thread is stopped");
  need(result_of(start(close_service, NULL)) == PTHREAD_CANCELED && !service, "closing is not cancelled");
}

int main(int argc, char** argv) {
  greta_runtime_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu", .threads = 2};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = 256};
  greta_session_options of_session = {.struct_size = sizeof of_session, .private_executor = &sizes};
  greta_service_options serve = {.struct_size = sizeof serve, .executor = &sizes};
  need(!greta_runtime_open(&on_cpu, &runtime) && !greta_model_open(runtime, &load, &model), "model");
  need(!greta_session_open(model, &of_session, &session) && !greta_service_open(model, &serve, &service),
       "session and service");
  need(!greta_tokenizer_encode(greta_model_tokenizer(model), "Once upon a time", 16, GRETA_ENCODE_BOS, prompt,
                               kMostTokens, &prompt_tokens),
       "encode");
  in_calls();
  in_waits();
  greta_session_close(session), greta_model_close(model), greta_runtime_close(runtime);
  return 0;
}
