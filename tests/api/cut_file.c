/* cut_file MODEL: a model lives on when its file is cut to nothing and then written over. Exits 0 if the text
 * stays the same. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "greta.h"

enum { kTextBytes = 4096 };

static char path[] = "/tmp/greta-cut-file-XXXXXX";

static void stop(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  if (*path) unlink(path);
  exit(1);
}

static void need(int holds, const char* what) {
  if (!holds) stop(what, greta_error_text());
}

static int keep(void* user, int32_t token, const char* text, size_t bytes) {
  char* to = user;
  (void)token;
  if (strlen(to) + bytes < kTextBytes) strncat(to, text, bytes);
  return 0;
}

/* What the model says of itself, and a text from its beginning. */
static void tell(greta_model* model, greta_session* session, char* text) {
  greta_model_info info = {.struct_size = sizeof info};
  greta_generate_options options = {
      .struct_size = sizeof options, .max_tokens = 40, .on_token = keep, .user = text};
  const char* prompt = "Once upon a time";
  int32_t tokens[64];
  size_t count = 0;
  need(!greta_model_describe(model, &info), "describe");
  snprintf(text, kTextBytes, "%s %s: ", info.architecture, info.name);
  need(!greta_session_truncate(session, 0), "truncate");
  need(!greta_tokenizer_encode(greta_model_tokenizer(model), prompt, strlen(prompt), GRETA_ENCODE_BOS, tokens,
                               64, &count),
       "encode");
  need(!greta_session_generate(session, tokens, count, &options, NULL), "generate");
}

static size_t copy(const char* from, FILE* to) {
  static char piece[1 << 16];
  size_t bytes = 0, got;
  FILE* file = fopen(from, "rb");
  if (!file) stop(from, "cannot be opened");
  while ((got = fread(piece, 1, sizeof piece, file)) > 0 && fwrite(piece, 1, got, to) == got) bytes += got;
  fclose(file);
  fflush(to);
  return bytes;
}

int main(int argc, char** argv) {
  greta_source source = {.struct_size = sizeof source, .path = path};
  greta_model_options options = {.struct_size = sizeof options, .source = &source};
  greta_runtime_options runtime_options = {.struct_size = sizeof runtime_options, .device = "cpu"};
  greta_runtime* runtime = NULL;
  greta_model* model = NULL;
  greta_session* session = NULL;
  static char whole[kTextBytes], cut[kTextBytes], overwritten[kTextBytes];
  FILE* file = fdopen(mkstemp(path), "wb");
  size_t bytes;
  if (argc != 2 || !file) stop("usage", "cut_file MODEL, and a folder /tmp that can be written to");
  bytes = copy(argv[1], file);
  need(!greta_runtime_open(&runtime_options, &runtime), "runtime");
  need(!greta_model_open(runtime, &options, &model), "model");
  need(!greta_session_open(model, NULL, &session), "session");
  tell(model, session, whole);
  if (ftruncate(fileno(file), 0)) stop(path, "cannot be cut");
  tell(model, session, cut);
  rewind(file);
  while (bytes-- > 0) putc(0x5a, file);
  fclose(file);
  tell(model, session, overwritten);
  greta_session_close(session);
  greta_model_close(model);
  greta_runtime_close(runtime);
  unlink(path);
  printf("%s\n", whole);
  if (strlen(whole) < 40 || strcmp(whole, cut) || strcmp(whole, overwritten)) {
    fprintf(stderr, "cut: %s\noverwritten: %s\n", cut, overwritten);
    return 1;
  }
  return 0;
}
