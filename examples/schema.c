/* schema MODEL: an answer that a program can read.
 * A JSON schema holds what the session writes, token by token, so that the text is valid whatever the model
 * is. Sampling settings belong to the session: they hold until they are set again. */
#include <stdio.h>
#include <string.h>

#include "greta.h"

static const char schema[] =
    "{\"type\": \"object\", \"properties\": {"
    "\"animal\": {\"enum\": [\"dog\", \"cat\", \"bird\"]}, \"legs\": {\"type\": \"integer\", \"minimum\": 0, "
    "\"maximum\": 8}, \"likes\": {\"type\": \"array\", \"items\": {\"type\": \"string\", \"maxLength\": 12}, "
    "\"minItems\": 1, \"maxItems\": 2}}, \"required\": [\"animal\", \"legs\", \"likes\"], "
    "\"additionalProperties\": false}";

static int keep_text(void* user, int32_t token, const char* text, size_t bytes) {
  char* answer = user;
  const size_t room = 1023 - strlen(answer);
  (void)token;
  strncat(answer, text, bytes < room ? bytes : room);
  return bytes > room; /* not 0 stops the text */
}

int main(int argc, char** argv) {
  const char prompt[] = "Once there was an animal:";
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  char answer[1024] = "";
  greta_generate_options write = {
      .struct_size = sizeof write, .max_tokens = 200, .on_token = keep_text, .user = answer};
  greta_generate_result result = {.struct_size = sizeof result};
  greta_runtime* runtime = NULL;
  greta_model* model = NULL;
  greta_session* session = NULL;
  int32_t tokens[64];
  size_t count = 0;
  int failed = greta_runtime_open(NULL, &runtime) || greta_model_open(runtime, &load, &model) ||
               greta_session_open(model, NULL, &session) || greta_session_json_schema(session, schema) ||
               greta_tokenizer_encode(greta_model_tokenizer(model), prompt, strlen(prompt), GRETA_ENCODE_BOS,
                                      tokens, 64, &count) ||
               greta_session_generate(session, tokens, count, &write, &result);
  if (failed)
    fprintf(stderr, "%s\n", greta_error_text());
  else
    puts(answer);
  greta_session_close(session), greta_model_close(model), greta_runtime_close(runtime);
  return failed;
}
