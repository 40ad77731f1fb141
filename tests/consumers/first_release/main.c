/* A program of the first release, compiled with the header that it had then and linked to the library of
 * today. It calls every function of that header but greta_tokenizer_open, greta_tokenizer_chat and
 * greta_session_repeat_penalty, which have changed since. Structs have the sizes that they had. */
#include "../open_model.h"

#define NEED(call)                     \
  do {                                 \
    if (!is_ok(#call, call)) return 1; \
  } while (0)
#define WANT(condition)                                                      \
  do {                                                                       \
    if (!(condition)) return fprintf(stderr, "not so: %s\n", #condition), 1; \
  } while (0)

static void on_log(void* user, greta_log_level level, const char* text) {
  (void)level, (void)text, ++*(int*)user;
}
static int on_progress(void* user, uint64_t done, uint64_t total) {
  ++*(int*)user;
  return done > total;
}
static int on_token(void* user, int32_t token, const char* text, size_t bytes) {
  (void)token, *(size_t*)user += strlen(text) == bytes ? bytes : 1000000;
  return 0;
}
static int on_prompt(void* user, uint32_t done, uint32_t total) { return (void)user, done > total; }

static int describe_file(greta_runtime* runtime, const greta_file* file) {
  OPTIONS(greta_tensor_info, tensor);
  NEED(greta_file_tensor(file, greta_file_tensor_count(file) - 1, &tensor));
  WANT(tensor.name[0] && tensor.type[0] && tensor.shape[3] == 1 && tensor.part == 0);
  WANT(tensor.offset_bytes + tensor.size_bytes <= greta_file_size_bytes(file));
  const char *key = NULL, *type = NULL;
  char value[64];
  NEED(greta_file_metadata(file, greta_file_metadata_count(file) - 1, &key, &type, value, sizeof value));
  WANT(key && type && greta_file_version(file) == 3);
  OPTIONS(greta_executor_options, executor);
  executor.context = 256, executor.key_type = GRETA_CACHE_F32, executor.value_type = GRETA_CACHE_F16;
  OPTIONS(greta_memory_plan, plan);
  NEED(greta_memory_plan_make(runtime, file, &executor, &plan));
  WANT(plan.fits == 1 && plan.context == 256 && strcmp(plan.device, "cpu") == 0);
  WANT(plan.total_bytes == plan.weights_bytes + plan.cache_bytes + plan.arena_bytes + plan.tables_bytes);
  return 0;
}

static int describe_devices(const greta_runtime* runtime) {
  uint32_t count = 0;
  NEED(greta_device_count(&count));
  for (uint32_t i = 0; i < count; ++i) {
    OPTIONS(greta_device_info, device);
    NEED(greta_device_describe(i, &device));
    WANT(device.id[0] && (device.usable == 1) == (device.reason[0] == 0));
  }
  OPTIONS(greta_device_info, own);
  NEED(greta_runtime_describe(runtime, &own));
  WANT(strcmp(own.id, "cpu") == 0 && own.unit_count == 2);
  return 0;
}

static int sample(greta_session* session) {
  NEED(greta_session_sampling_clear(session));
  NEED(greta_session_temperature(session, 0.7f));
  NEED(greta_session_top_k(session, 40));
  NEED(greta_session_top_p(session, 0.9f));
  NEED(greta_session_min_p(session, 0.05f));
  NEED(greta_session_seed(session, 42));
  return 0;
}

static int write_text(greta_model* model, greta_session* session) {
  const greta_tokenizer* tokenizer = greta_model_tokenizer(model);
  int32_t tokens[16];
  size_t count = 0, bytes = 0, written = 0;
  NEED(greta_tokenizer_encode(tokenizer, "Once upon a time", 16, GRETA_ENCODE_BOS, tokens, 16, &count));
  WANT(count > 1 && count < 16 && tokens[0] == greta_tokenizer_bos(tokenizer));
  char text[64];
  NEED(greta_tokenizer_decode(tokenizer, tokens + 1, count - 1, text, sizeof text, &bytes));
  WANT(bytes >= 16 && memcmp(text + bytes - 16, "Once upon a time", 16) == 0);
  WANT(greta_tokenizer_is_end(tokenizer, greta_tokenizer_eos(tokenizer)) == 1);
  if (sample(session)) return 1;
  OPTIONS(greta_generate_options, options);
  options.max_tokens = 8, options.on_token = on_token, options.user = &written, options.on_prompt = on_prompt;
  OPTIONS(greta_generate_result, result);
  NEED(greta_session_generate(session, tokens, count, &options, &result));
  WANT(result.reason == GRETA_STOP_LENGTH && result.generated_tokens == 8 && result.prompt_tokens == count);
  WANT(written > 8 && written < 1000 && result.generate_ns > 0);
  WANT(greta_session_position(session) == count + 7 && greta_session_context(session) == 256);
  return 0;
}

static int step(greta_session* session, uint32_t vocabulary) {
  greta_session* fork = NULL;
  NEED(greta_session_fork(session, &fork));
  NEED(greta_session_truncate(fork, 3));
  const int32_t token = 5;
  const float* logits = NULL;
  NEED(greta_session_eval(fork, &token, 1, GRETA_ROWS_ALL, &logits));
  WANT(logits[0] == logits[0] && logits[vocabulary - 1] == logits[vocabulary - 1]);
  greta_batch_item items[2] = {{session, &token, 1, NULL}, {fork, &token, 1, NULL}};
  NEED(greta_batch_eval(items, 2));
  WANT(items[0].logits && items[1].logits && greta_session_position(fork) == 5);
  greta_session_cancel(fork);
  greta_session_close(fork);
  return 0;
}

static int run(const char* path) {
  int logged = 0, progress = 0;
  OPTIONS(greta_runtime_options, runtime_options);
  runtime_options.device = "cpu", runtime_options.threads = 2;
  runtime_options.log = on_log, runtime_options.log_user = &logged;
  greta_runtime* runtime = NULL;
  NEED(greta_runtime_open(&runtime_options, &runtime));
  OPTIONS(greta_source, source);
  source.path = path;
  greta_file* file = NULL;
  NEED(greta_file_open(&source, &file));
  OPTIONS(greta_model_options, model_options);
  model_options.source = &source, model_options.progress = on_progress,
  model_options.progress_user = &progress;
  greta_model* model = NULL;
  NEED(greta_model_open(runtime, &model_options, &model));
  OPTIONS(greta_model_info, info);
  NEED(greta_model_describe(model, &info));
  WANT(strcmp(info.architecture, "llama") == 0 && progress > 0);
  WANT(greta_tokenizer_size(greta_model_tokenizer(model)) == info.vocab_size);
  OPTIONS(greta_executor_options, executor_options);
  executor_options.context = 256, executor_options.sequences = 2, executor_options.cache_tokens = 512;
  greta_executor* executor = NULL;
  NEED(greta_executor_open(model, &executor_options, &executor));
  OPTIONS(greta_session_options, session_options);
  session_options.executor = executor;
  greta_session* session = NULL;
  NEED(greta_session_open(model, &session_options, &session));
  uint64_t bandwidth = 0;
  NEED(greta_runtime_measure_bandwidth(runtime, &bandwidth));
  WANT(bandwidth > 0);
  const int failed = describe_devices(runtime) || describe_file(runtime, file) ||
                     write_text(model, session) || step(session, info.vocab_size);
  greta_session_close(session);
  greta_executor_close(executor);
  greta_model_close(model);
  greta_file_close(file);
  greta_runtime_close(runtime);
  return failed;
}

int main(int argc, char** argv) { return argc == 2 ? consume(argc, argv) || run(argv[1]) : 2; }
