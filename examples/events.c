/* events MODEL: one thread reads the answers of many requests.
 * A callback of the service says whose events may be read; it only marks the request and wakes the thread.
 * Nothing waits for one request alone, so the same loop serves a thousand of them. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "greta.h"

#define REQUESTS 48

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) return printf("line %d: %s (%s)\n", __LINE__, #condition, greta_error_text()), 1; \
  } while (0)

static greta_runtime* runtime;
static greta_model* model;

typedef struct Client {
  greta_request* request;
  int ready;  /* under the lock: there may be something to read */
  int calls;  /* of on_ready */
  int events; /* that were read */
  char answer[2048];
} Client;

static Client clients[REQUESTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t some_ready = PTHREAD_COND_INITIALIZER;

static void on_ready(void* user, void* request_user) {
  Client* client = request_user;
  pthread_mutex_lock(&lock);
  client->ready = 1;
  ++client->calls;
  ++*(int*)user;
  pthread_cond_signal(&some_ready);
  pthread_mutex_unlock(&lock);
}

/* Waits until a client is ready, and takes it. */
static Client* next_ready(void) {
  Client* found = NULL;
  pthread_mutex_lock(&lock);
  for (;;) {
    for (int i = 0; i < REQUESTS && !found; ++i)
      if (clients[i].ready) found = &clients[i];
    if (found) break;
    pthread_cond_wait(&some_ready, &lock);
  }
  found->ready = 0;
  pthread_mutex_unlock(&lock);
  return found;
}

static greta_status add(greta_service* service, int number, void* user, greta_request** out) {
  char text[64];
  int32_t tokens[64];
  greta_request_options options = {.struct_size = sizeof options, .tokens = tokens, .user = user};
  options.max_tokens = 8 + (uint32_t)number % 17, options.ignore_end = 1;
  snprintf(text, sizeof text, "Once upon a time there were %d", number);
  if (greta_tokenizer_encode(greta_model_tokenizer(model), text, strlen(text), GRETA_ENCODE_BOS, tokens, 64,
                             &options.token_count))
    return GRETA_ERROR_ARGUMENT;
  return greta_service_add(service, &options, out);
}

/* Reads what there is without waiting. Returns 1 at the end. */
static int read_some(Client* client) {
  greta_request_event event = {.struct_size = sizeof event};
  for (;;) {
    if (greta_request_next(client->request, 0, &event)) return 1;
    if (event.kind == GRETA_EVENT_END) return 1;
    if (event.kind == GRETA_EVENT_NONE) return 0;
    ++client->events;
    strncat(client->answer, event.text, sizeof client->answer - strlen(client->answer) - 1);
  }
}

/* Every request is read to its end by one thread that never waits for one of them. */
static int serve_all(void) {
  int calls = 0, ended = 0;
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = 128, .cache_tokens = 2048};
  greta_service_options serve = {.struct_size = sizeof serve, .own_thread = 1, .executor = &sizes};
  greta_service* service = NULL;
  serve.event_capacity = 4;
  serve.on_ready = on_ready, serve.on_ready_user = &calls;
  CHECK(greta_service_open(model, &serve, &service) == GRETA_OK);
  for (int i = 0; i < REQUESTS; ++i) {
    pthread_mutex_lock(&lock); /* so that the client has its request before it is taken */
    const greta_status status = add(service, i, &clients[i], &clients[i].request);
    pthread_mutex_unlock(&lock);
    CHECK(status == GRETA_OK);
  }
  while (ended < REQUESTS) {
    Client* client = next_ready();
    if (!client->request || !read_some(client)) continue; /* what it was told of may have been read already */
    CHECK(greta_request_finish(client->request, NULL) == GRETA_OK);
    greta_request_close(client->request);
    client->request = NULL;
    ++ended;
  }
  for (int i = 0; i < REQUESTS; ++i) {
    CHECK(strlen(clients[i].answer) > 0);
    CHECK(clients[i].calls > 0 && clients[i].calls <= clients[i].events + 1);
  }
  greta_service_close(service);
  return 0;
}

int main(int argc, char** argv) {
  greta_runtime_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  CHECK(greta_runtime_open(&on_cpu, &runtime) == GRETA_OK);
  CHECK(greta_model_open(runtime, &load, &model) == GRETA_OK);
  if (serve_all()) return 1;
  greta_model_close(model), greta_runtime_close(runtime);
  return puts("one thread read all requests") < 0;
}
