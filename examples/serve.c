/* serve MODEL: a service answers eight threads at once.
 * Each thread adds a request and waits for its pieces of text; the service computes one step for all of them.
 * Pages of equal beginnings are shared, and no thread needs a lock of its own. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "greta.h"

static greta_runtime* runtime;
static greta_model* model;
static greta_service* service;

static void* ask(void* beginning) {
  int32_t tokens[64];
  greta_request_options options = {.struct_size = sizeof options, .tokens = tokens, .max_tokens = 40};
  greta_request_event event = {.struct_size = sizeof event};
  greta_request* request = NULL;
  char answer[4096] = "";
  if (greta_tokenizer_encode(greta_model_tokenizer(model), beginning, strlen(beginning), GRETA_ENCODE_BOS,
                             tokens, 64, &options.token_count) ||
      greta_service_add(service, &options, &request))
    return "a request was refused";
  while (greta_request_next(request, UINT64_MAX, &event) == GRETA_OK && event.kind != GRETA_EVENT_END)
    strncat(answer, event.text, sizeof answer - strlen(answer) - 1);
  const greta_status status = greta_request_finish(request, NULL);
  greta_request_close(request);
  printf("%s%s\n\n", (const char*)beginning, answer);
  return status ? "a request failed" : NULL;
}

int main(int argc, char** argv) {
  const char* beginnings[8] = {"Once upon a time", "The dog",     "A girl named Sue", "In the garden",
                               "One day",          "Tom and Mia", "The moon",         "It was dark"};
  greta_runtime_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = 256, .cache_tokens = 2048};
  greta_service_options serve = {.struct_size = sizeof serve, .own_thread = 1, .executor = &sizes};
  pthread_t threads[8];
  int i, failed = 0;
  if (greta_runtime_open(&on_cpu, &runtime) || greta_model_open(runtime, &load, &model) ||
      greta_service_open(model, &serve, &service))
    return puts(greta_error_text()), 1;
  for (i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, ask, (void*)beginnings[i]);
  for (i = 0; i < 8; ++i) {
    void* wrong = NULL;
    pthread_join(threads[i], &wrong);
    if (wrong) failed = puts(wrong) >= 0;
  }
  greta_service_close(service), greta_model_close(model), greta_runtime_close(runtime);
  return failed;
}
