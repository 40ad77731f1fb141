/* What every consumer does: ask for the version, fail to open a file, open the bundled model and write a
 * few tokens. Returns 0 if all went as it should. C99 and C++. */
#include <stdio.h>
#include <string.h>

#include "greta.h"

#define OPTIONS(type, name)      \
  type name;                     \
  memset(&name, 0, sizeof name); \
  name.struct_size = sizeof name

static int fails_in_words(greta_status status, greta_status expected) {
  if (status == expected && greta_error_text()[0] != 0) return 1;
  fprintf(stderr, "expected status %d with a text, got %d: %s\n", expected, status, greta_error_text());
  return 0;
}

static int is_ok(const char* call, greta_status status) {
  if (status == GRETA_OK) return 1;
  fprintf(stderr, "%s: status %d: %s\n", call, status, greta_error_text());
  return 0;
}

static int write_tokens(greta_session* session) {
  int32_t first = 0; /* BOS of the bundled model */
  OPTIONS(greta_generate_options, options);
  options.max_tokens = 4;
  options.ignore_end = 1;
  OPTIONS(greta_generate_result, result);
  if (!is_ok("greta_session_generate", greta_session_generate(session, &first, 1, &options, &result)))
    return 1;
  return result.generated_tokens == 4 ? 0 : 1;
}

static int open_model(const char* path) {
  OPTIONS(greta_runtime_options, runtime_options);
  runtime_options.device = "cpu";
  greta_runtime* runtime = NULL;
  if (!is_ok("greta_runtime_open", greta_runtime_open(&runtime_options, &runtime))) return 1;

  OPTIONS(greta_source, source);
  source.path = "no-such-file.gguf";
  OPTIONS(greta_model_options, model_options);
  model_options.source = &source;
  greta_model* model = NULL;
  if (!fails_in_words(greta_model_open(runtime, &model_options, &model), GRETA_ERROR_FILE)) return 1;

  source.path = path;
  greta_session* session = NULL;
  if (!is_ok("greta_model_open", greta_model_open(runtime, &model_options, &model))) return 1;
  if (!is_ok("greta_session_open", greta_session_open(model, NULL, &session))) return 1;
  int failed = write_tokens(session);
  greta_session_close(session);
  greta_model_close(model);
  greta_runtime_close(runtime);
  return failed;
}

static int consume(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: consumer MODEL.gguf\n");
    return 2;
  }
  if (greta_version() / 100 != GRETA_VERSION / 100) {
    fprintf(stderr, "library %u, header %u\n", (unsigned)greta_version(), (unsigned)GRETA_VERSION);
    return 1;
  }
  int failed = open_model(argv[1]);
  printf("greta %u: %s\n", (unsigned)greta_version(), failed ? "failed" : "ok");
  return failed;
}
