/* batch MODEL: several conversations on one executor.
 * The memory plan comes before the model is loaded; two prompts are read in one step; a session is forked;
 * two texts are written together. It exits with 0 if the tokens are those of sessions that run alone. */
#include <stdio.h>
#include <string.h>

#include "greta.h"

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, greta_error_text());
  return 1;
}

static int32_t best(const float* logits, uint32_t vocab) {
  uint32_t i, top = 0;
  for (i = 1; i < vocab; ++i)
    if (logits[i] > logits[top]) top = i;
  return (int32_t)top;
}

/* The first token of a text. */
static int keep_first(void* user, int32_t token, const char* text, size_t bytes) {
  int32_t* first = user;
  (void)text, (void)bytes;
  if (*first < 0) *first = token;
  return 0;
}

/* Two texts after the same prompts as in `prompts`; `out` gets the first token of each. */
static int write_together(greta_session* first, greta_session* second, const greta_batch_item* prompts,
                          int32_t* out) {
  greta_generate_item items[2];
  greta_generate_options options[2];
  int i;
  memset(items, 0, sizeof items);
  memset(options, 0, sizeof options);
  items[0].session = first;
  items[1].session = second;
  for (i = 0; i < 2; ++i) {
    if (greta_session_truncate(items[i].session, 0)) return 1;
    options[i].struct_size = sizeof options[i];
    options[i].max_tokens = 8;
    options[i].ignore_end = 1;
    options[i].on_token = keep_first;
    options[i].user = &out[i];
    items[i].tokens = prompts[i].tokens;
    items[i].count = prompts[i].count;
    items[i].options = &options[i];
  }
  return greta_batch_generate(items, 2) || items[0].status || items[1].status;
}

int main(int argc, char** argv) {
  greta_runtime_options runtime_options = {
      .struct_size = sizeof runtime_options, .device = "cpu", .exact = 1};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : ""};
  greta_model_options model_options = {.struct_size = sizeof model_options, .source = &source};
  greta_executor_options sizes = {
      .struct_size = sizeof sizes, .context = 128, .sequences = 3, .cache_tokens = 384};
  greta_session_options shared = {.struct_size = sizeof shared};
  greta_memory_plan plan = {.struct_size = sizeof plan};
  greta_model_info info = {.struct_size = sizeof info};
  greta_runtime* runtime = NULL;
  greta_file* file = NULL;
  greta_model* model = NULL;
  greta_executor* executor = NULL;
  greta_session *first = NULL, *second = NULL, *fork = NULL;
  const int32_t left[] = {1, 5, 9, 13}, right[] = {1, 7, 3};
  greta_batch_item items[2] = {{.tokens = left, .count = 4}, {.tokens = right, .count = 3}};
  const float* logits = NULL;
  int32_t alone[2], together[2], forked, written[2] = {-1, -1};

  if (argc != 2) return fprintf(stderr, "usage: batch MODEL\n"), 2;
  if (greta_runtime_open(&runtime_options, &runtime)) return failed("runtime");
  if (greta_file_open(&source, &file)) return failed("file");
  if (greta_memory_plan_make(runtime, file, &sizes, &plan)) return failed("plan");
  if (!plan.fits || plan.context != 128 || plan.cache_bytes == 0) return failed("the plan");
  if (greta_model_open(runtime, &model_options, &model)) return failed("model");
  if (greta_model_describe(model, &info)) return failed("describe");
  if (greta_executor_open(model, &sizes, &executor)) return failed("executor");
  shared.executor = executor;
  if (greta_session_open(model, &shared, &first)) return failed("first");
  if (greta_session_open(model, &shared, &second)) return failed("second");

  if (greta_session_eval(first, left, 4, GRETA_ROWS_LAST, &logits)) return failed("eval");
  alone[0] = best(logits, info.vocab_size);
  if (greta_session_eval(second, right, 3, GRETA_ROWS_LAST, &logits)) return failed("eval");
  alone[1] = best(logits, info.vocab_size);
  if (greta_session_truncate(first, 0) || greta_session_truncate(second, 0)) return failed("truncate");

  items[0].session = first;
  items[1].session = second;
  if (greta_batch_eval(items, 2)) return failed("batch");
  together[0] = best(items[0].logits, info.vocab_size);
  together[1] = best(items[1].logits, info.vocab_size);

  if (greta_session_truncate(first, 3)) return failed("truncate");
  if (greta_session_fork(first, &fork)) return failed("fork");
  if (greta_session_eval(fork, left + 3, 1, GRETA_ROWS_LAST, &logits)) return failed("forked eval");
  forked = best(logits, info.vocab_size);

  if (write_together(first, second, items, written)) return failed("generate");
  printf("alone %d %d, together %d %d, forked %d, written %d %d\n", alone[0], alone[1], together[0],
         together[1], forked, written[0], written[1]);
  greta_session_close(fork), greta_session_close(second), greta_session_close(first);
  greta_executor_close(executor);
  greta_model_close(model);
  greta_file_close(file);
  greta_runtime_close(runtime);
  return alone[0] != together[0] || alone[1] != together[1] || forked != alone[0] || written[0] != alone[0] ||
         written[1] != alone[1];
}
