/* events MODEL: what a service tells of the ends of requests where nothing runs it, and of the probabilities
 * of tokens. C99 and greta.h alone. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "greta.h"

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) return printf("line %d: %s (%s)\n", __LINE__, #condition, greta_error_text()), 1; \
  } while (0)

static greta_runtime* runtime;
static greta_model* model;

static greta_status add(greta_service* service, int number, greta_request** out) {
  char text[64];
  int32_t tokens[64];
  greta_request_options options = {.struct_size = sizeof options, .tokens = tokens};
  options.max_tokens = 8 + (uint32_t)number % 17, options.ignore_end = 1;
  snprintf(text, sizeof text, "Once upon a time there were %d", number);
  if (greta_tokenizer_encode(greta_model_tokenizer(model), text, strlen(text), GRETA_ENCODE_BOS, tokens, 64,
                             &options.token_count))
    return GRETA_ERROR_ARGUMENT;
  return greta_service_add(service, &options, out);
}

static greta_request* own;
static greta_event_kind kinds[2]; /* what the callback below has read */
static int seen;

/* Reads its request, and closes it at its end. */
static void read_within(void* user, void* request_user) {
  greta_request_event event = {.struct_size = sizeof event};
  (void)user, (void)request_user;
  if (!own || greta_request_next(own, 0, &event)) return;
  kinds[seen++ % 2] = event.kind;
  if (event.kind == GRETA_EVENT_END) greta_request_close(own), own = NULL;
}

/* A cancelled request tells its end where nothing runs the service, when another one needs its room, and when
 * the service is closed. A closed request tells nothing. */
static int tell_of_ends(void) {
  greta_service_options serve = {.struct_size = sizeof serve, .max_requests = 1};
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = 128};
  greta_service* service = NULL;
  greta_request *second = NULL, *third = NULL;
  serve.executor = &sizes, serve.on_ready = read_within;
  CHECK(greta_service_open(model, &serve, &service) == GRETA_OK);
  CHECK(add(service, 1, &own) == GRETA_OK);
  greta_request_cancel(own);
  CHECK(seen == 0);
  CHECK(add(service, 2, &second) == GRETA_OK);
  CHECK(seen == 1 && kinds[0] == GRETA_EVENT_END && !own);
  greta_request_close(second);
  CHECK(add(service, 3, &third) == GRETA_OK);
  CHECK(seen == 1);
  own = third;
  greta_service_close(service);
  CHECK(seen == 2 && kinds[1] == GRETA_EVENT_END && !own);
  return 0;
}

/* The probabilities by which tokens were drawn are those of what top_k has left, and are 1 together. */
static int list_probabilities(uint32_t top_k) {
  const int32_t tokens[] = {1, 40, 50, 60};
  greta_sampling_options sampling = {.struct_size = sizeof sampling, .temperature = 1.5f, .seed = 5};
  greta_request_options options = {.struct_size = sizeof options, .tokens = tokens, .token_count = 4};
  greta_service_options serve = {.struct_size = sizeof serve, .own_thread = 1};
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = 128};
  greta_request_event event = {.struct_size = sizeof event};
  greta_service* service = NULL;
  greta_request* request = NULL;
  size_t count = 0;
  serve.executor = &sizes;
  sampling.top_k = top_k;
  options.max_tokens = 6, options.ignore_end = 1, options.sampling = &sampling;
  options.logprobs = options.sampled_logprobs = 1, options.top_logprobs = 8;
  CHECK(greta_service_open(model, &serve, &service) == GRETA_OK);
  CHECK(greta_service_add(service, &options, &request) == GRETA_OK);
  while (greta_request_next(request, UINT64_MAX, &event) == GRETA_OK && event.kind != GRETA_EVENT_END) {
    double sum = 0, own = 0;
    if (event.token < 0) continue;
    CHECK(event.top_count == top_k);
    for (size_t i = 0; i < top_k; ++i) {
      CHECK(i == 0 || event.top[i].logprob <= event.top[i - 1].logprob);
      sum += exp(event.top[i].logprob);
      own = event.top[i].token == event.token ? event.top[i].logprob : own;
    }
    CHECK(fabs(sum - 1) < 1e-5 && (float)own == event.logprob);
    ++count;
  }
  CHECK(count == 6);
  greta_request_close(request), greta_service_close(service);
  return 0;
}

int main(int argc, char** argv) {
  greta_runtime_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  CHECK(greta_runtime_open(&on_cpu, &runtime) == GRETA_OK);
  CHECK(greta_model_open(runtime, &load, &model) == GRETA_OK);
  if (tell_of_ends() || list_probabilities(1) || list_probabilities(5)) return 1;
  greta_model_close(model), greta_runtime_close(runtime);
  return puts("all ends were told") < 0;
}
