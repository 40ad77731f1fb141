/* embed MODEL: vectors of texts, and how near the texts are to each other.
 * A session gives the vector of one text, and a request of a service gives the same vector among others.
 * The vectors have length 1, so that their products are cosines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "greta.h"

static const char* const texts[] = {"The dog ran to the park with a ball.",
                                    "A puppy played with a ball in the park.",
                                    "Her soup was too hot to eat."};
enum { kTexts = sizeof texts / sizeof *texts };

static greta_runtime* runtime;
static greta_model* model;
static greta_session* session;
static greta_service* service;

static int open_all(const char* path) {
  greta_runtime_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
  greta_source source = {.struct_size = sizeof source, .path = path};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = 256};
  greta_service_options serve = {.struct_size = sizeof serve, .own_thread = 1, .executor = &sizes};
  greta_session_options alone = {.struct_size = sizeof alone, .private_executor = &sizes};
  return greta_runtime_open(&on_cpu, &runtime) || greta_model_open(runtime, &load, &model) ||
         greta_session_open(model, &alone, &session) || greta_service_open(model, &serve, &service);
}

/* The vector of a text as a request of the service gives it. */
static int ask(const int32_t* tokens, size_t count, const greta_embed_options* how, float* vector,
               size_t width) {
  greta_request_options options = {
      .struct_size = sizeof options, .tokens = tokens, .token_count = count, .embed = how};
  greta_request_event event = {.struct_size = sizeof event};
  greta_request* request = NULL;
  int vectors = 0;
  greta_status status = greta_service_add(service, &options, &request);
  while (!status && !(status = greta_request_next(request, UINT64_MAX, &event)) &&
         event.kind != GRETA_EVENT_END) {
    if (event.kind != GRETA_EVENT_EMBEDDING || event.embedding_count != width) return 1;
    memcpy(vector, event.embedding, width * sizeof *vector);
    ++vectors;
  }
  if (!status) status = greta_request_finish(request, NULL);
  greta_request_close(request);
  return status || vectors != 1;
}

static double product(const float* a, const float* b, size_t width) {
  double sum = 0;
  for (size_t i = 0; i < width; ++i) sum += (double)a[i] * b[i];
  return sum;
}

int main(int argc, char** argv) {
  greta_model_info info = {.struct_size = sizeof info};
  greta_embed_options how = {.struct_size = sizeof how, .pooling = GRETA_POOLING_MEAN};
  float* vectors[kTexts] = {NULL};
  int failed = 0;
  if (open_all(argc > 1 ? argv[1] : "model.gguf") || greta_model_describe(model, &info))
    return puts(greta_error_text()), 1;
  for (int i = 0; i < kTexts && !failed; ++i) {
    int32_t tokens[64];
    size_t count = 0;
    const float* alone = NULL;
    vectors[i] = malloc(info.width * sizeof(float));
    failed = !vectors[i] ||
             greta_tokenizer_encode(greta_model_tokenizer(model), texts[i], strlen(texts[i]),
                                    GRETA_ENCODE_BOS, tokens, 64, &count) ||
             ask(tokens, count, &how, vectors[i], info.width) || greta_session_truncate(session, 0) ||
             greta_session_embed(session, tokens, count, &how, &alone);
    if (failed) break;
    failed = fabs(product(alone, alone, info.width) - 1) > 1e-5 ||
             fabs(product(alone, vectors[i], info.width) - 1) > 1e-3;
    for (int j = 0; j < i; ++j)
      printf("%.3f  %s / %s\n", product(vectors[i], vectors[j], info.width), texts[j], texts[i]);
  }
  if (failed) printf("failed: %s\n", greta_error_text());
  for (int i = 0; i < kTexts; ++i) free(vectors[i]);
  greta_service_close(service), greta_session_close(session), greta_model_close(model);
  greta_runtime_close(runtime);
  return failed;
}
