/* tune MODEL FOLDER: what greta_runtime_tune makes of a device, and how its table is used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "greta.h"

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) return printf("line %d: %s (%s)\n", __LINE__, #condition, greta_error_text()), 1; \
  } while (0)

typedef struct Text {
  char bytes[1 << 20];
  size_t count;
} Text;

static int append(void* user, const void* bytes, size_t count) {
  Text* text = user;
  if (text->count + count > sizeof text->bytes) return 1;
  memcpy(text->bytes + text->count, bytes, count);
  text->count += count;
  return 0;
}

static int read_file(const char* path, Text* text) {
  FILE* file = fopen(path, "rb");
  text->count = 0;
  if (!file) return 1;
  text->count = fread(text->bytes, 1, sizeof text->bytes, file);
  fclose(file);
  return 0;
}

static int stop(void* user, const greta_tune_progress* now) {
  uint32_t* calls = user;
  return now->entry[0] && ++*calls == 3;
}

typedef struct Seen {
  uint32_t candidates, chosen, defaults, without_samples;
} Seen;

static int look(void* user, const greta_tuning_candidate* from) {
  Seen* seen = user;
  ++seen->candidates;
  seen->chosen += from->chosen;
  seen->defaults += from->index == 0;
  seen->without_samples += from->chosen && from->sample_count == 0;
  return 0;
}

static int stop_at_once(void* user, const greta_tuning_candidate* from) {
  (void)user, (void)from;
  return 1;
}

static uint32_t warnings;
static void count_warnings(void* user, greta_log_level level, const char* text) {
  (void)user;
  if (level == GRETA_LOG_WARNING && strstr(text, "tuning table")) ++warnings;
}

static greta_status open_runtime(const char* folder, greta_runtime** runtime) {
  greta_runtime_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.device = "cpu";
  options.threads = 2;
  options.log = count_warnings;
  options.tuning_folder = folder;
  return greta_runtime_open(&options, runtime);
}

static Text table, again;
static greta_tune_options tune;
static greta_tune_result result;
static const uint32_t tokens[] = {1, 4}, wrong_tokens[] = {0};

static int misuse(greta_runtime* runtime) {
  greta_runtime* without = NULL;
  size_t bytes = 0;
  char path[16];
  CHECK(open_runtime(NULL, &without) == GRETA_OK);
  CHECK(greta_runtime_tune(NULL, &tune, NULL) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_runtime_tune(without, &tune, NULL) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_runtime_tuning_path(without, path, sizeof path, &bytes) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_runtime_tuning_import(without, "", 0) == GRETA_ERROR_ARGUMENT);
  tune.tokens = wrong_tokens, tune.token_count = 1;
  CHECK(greta_runtime_tune(runtime, &tune, NULL) == GRETA_ERROR_ARGUMENT);
  tune.tokens = tokens, tune.token_count = 2;
  tune.shapes = "some size";
  CHECK(greta_runtime_tune(runtime, &tune, NULL) == GRETA_ERROR_ARGUMENT);
  tune.shapes = NULL;
  tune.file_count = 1;
  CHECK(greta_runtime_tune(runtime, &tune, NULL) == GRETA_ERROR_ARGUMENT);
  greta_runtime_close(without);
  return 0;
}

/* A callback stops it; the next run goes on, and a third one has nothing to do. */
static int run_tunes(greta_runtime* runtime) {
  uint32_t calls = 0;
  tune.on_progress = stop, tune.user = &calls;
  CHECK(greta_runtime_tune(runtime, &tune, &result) == GRETA_ERROR_CANCELLED);
  tune.on_progress = NULL;
  CHECK(greta_runtime_tune(runtime, &tune, &result) == GRETA_OK);
  CHECK(result.entries > 4 && result.wrong == 0 && result.hung == 0 && result.right >= result.made);
  CHECK(greta_runtime_tune(runtime, &tune, &result) == GRETA_OK);
  CHECK(result.made == 0 && result.there == result.entries && result.right == 0);
  return 0;
}

/* The table says what was found, and from the same samples come the same bytes. */
static int read_table(const char* path) {
  Seen seen;
  memset(&seen, 0, sizeof seen);
  CHECK(read_file(path, &table) == 0);
  CHECK(greta_tuning_read(table.bytes, table.count, look, &seen) == GRETA_OK);
  CHECK(seen.defaults == result.entries && seen.chosen == result.entries);
  CHECK(seen.without_samples == 0 && seen.candidates > seen.defaults);
  CHECK(greta_tuning_read(table.bytes, table.count, stop_at_once, NULL) == GRETA_ERROR_CANCELLED);
  CHECK(greta_tuning_read(table.bytes, table.count, NULL, NULL) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_tuning_replay(table.bytes, table.count, append, &again) == GRETA_OK);
  CHECK(again.count == table.count && !memcmp(again.bytes, table.bytes, table.count));
  return 0;
}

/* A table that was carried elsewhere is taken. A damaged one is not, which leaves the file as it is. */
static int import(greta_runtime* runtime, const char* path) {
  CHECK(greta_runtime_tuning_import(runtime, table.bytes, table.count) == GRETA_OK);
  table.bytes[table.count / 2] ^= 1;
  CHECK(greta_runtime_tuning_import(runtime, table.bytes, table.count) == GRETA_ERROR_FILE);
  CHECK(greta_tuning_replay(table.bytes, table.count, append, &again) == GRETA_ERROR_FILE);
  CHECK(read_file(path, &again) == 0 && again.count == table.count);
  return 0;
}

/* A runtime reads a table without a word, and says so if it is damaged. */
static int reopen(const char* folder, const char* path) {
  greta_runtime* runtime = NULL;
  FILE* out;
  CHECK(open_runtime(folder, &runtime) == GRETA_OK);
  CHECK(warnings == 0);
  greta_runtime_close(runtime);
  out = fopen(path, "wb");
  CHECK(out && fwrite(table.bytes, 1, table.count, out) == table.count && fclose(out) == 0);
  CHECK(open_runtime(folder, &runtime) == GRETA_OK);
  CHECK(warnings == 1);
  greta_runtime_close(runtime);
  return 0;
}

int main(int argc, char** argv) {
  greta_runtime* runtime = NULL;
  greta_file* file = NULL;
  greta_source source;
  char path[4096];
  size_t bytes = 0;

  CHECK(argc == 3);
  memset(&source, 0, sizeof source);
  source.struct_size = sizeof source;
  source.path = argv[1];
  tune.struct_size = sizeof tune;
  result.struct_size = sizeof result;
  CHECK(greta_file_open(&source, &file) == GRETA_OK);
  CHECK(open_runtime(argv[2], &runtime) == GRETA_OK);
  CHECK(greta_runtime_tuning_path(runtime, path, sizeof path, &bytes) == GRETA_OK);
  CHECK(bytes == strlen(path) && !strncmp(path, argv[2], strlen(argv[2])));
  remove(path); /* a damaged one, where this ran before */
  warnings = 0;
  if (misuse(runtime)) return 1;
  tune.files = (const greta_file* const*)&file;
  if (run_tunes(runtime) || read_table(path) || import(runtime, path)) return 1;
  greta_runtime_close(runtime);
  greta_file_close(file);
  return reopen(argv[2], path);
}
