/* story MODEL: the short way through greta.h.
 * A runtime is opened, a model, and a session; a prompt is made tokens; a callback prints the text as it
 * comes. Every call that can fail is asked, and greta_error_text says in words what went wrong. */
#include <stdio.h>
#include <string.h>

#include "greta.h"

static int print_token(void* user, int32_t token, const char* text, size_t bytes) {
  (void)token;
  *(size_t*)user += bytes;
  return fwrite(text, 1, bytes, stdout) != bytes;
}

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, greta_error_text());
  return 1;
}

int main(int argc, char** argv) {
  greta_runtime_options runtime_options = {.struct_size = sizeof runtime_options, .device = "cpu"};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : ""};
  greta_model_options model_options = {.struct_size = sizeof model_options, .source = &source};
  greta_generate_result result = {.struct_size = sizeof result};
  greta_runtime* runtime = NULL;
  greta_model* model = NULL;
  greta_session* session = NULL;
  size_t text_bytes = 0, count = 0;
  int32_t tokens[64];
  const char* prompt = "Once upon a time";
  greta_generate_options options = {
      .struct_size = sizeof options, .max_tokens = 40, .on_token = print_token, .user = &text_bytes};

  if (argc != 2) {
    fprintf(stderr, "usage: story MODEL\n");
    return 2;
  }
  if (greta_runtime_open(&runtime_options, &runtime)) return failed("runtime");
  if (greta_model_open(runtime, &model_options, &model)) return failed("model");
  if (greta_session_open(model, NULL, &session)) return failed("session");
  if (greta_tokenizer_encode(greta_model_tokenizer(model), prompt, strlen(prompt), GRETA_ENCODE_BOS, tokens,
                             64, &count))
    return failed("encode");
  if (greta_session_generate(session, tokens, count, &options, &result)) return failed("generate");
  printf("\n");
  greta_session_close(session);
  greta_model_close(model);
  greta_runtime_close(runtime);
  if (result.generated_tokens == 0 || result.generated_tokens > 40 || text_bytes == 0) {
    fprintf(stderr, "%u tokens, %zu bytes\n", result.generated_tokens, text_bytes);
    return 1;
  }
  return 0;
}
