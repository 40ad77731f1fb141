/* guest MODEL SMALL ROUNDS: what a program that embeds the library finds of it while it works and after it
 * has closed everything. A child process goes through the whole interface with MODEL, then opens everything,
 * reads a token and closes everything ROUNDS times with SMALL. Its descriptors 1 and 2 stay empty, and it
 * ends by itself. After the first round and after the last, nothing of the process has changed: threads,
 * open files, signals, locale, environment, folder, rounding. Rounds add no memory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "greta.h"

extern char** environ;

enum { kKeptRounds = 20, kMostGrowthKiB = 1024 };

static FILE* report; /* a copy of the parent's descriptor 2 */

#define NEED(condition)                                                                     \
  do {                                                                                      \
    if (condition) break;                                                                   \
    fprintf(report, "line %d: not so: %s; %s\n", __LINE__, #condition, greta_error_text()); \
    fflush(report);                                                                         \
    _exit(3);                                                                               \
  } while (0)

/* ---- one round of the whole interface --------------------------------------------------------------- */

static int append(void* user, const void* bytes, size_t count) {
  char** end = user;
  memcpy(*end, bytes, count);
  *end += count;
  return 0;
}
static int on_token(void* user, int32_t token, const char* text, size_t bytes) {
  (void)token, (void)text, *(size_t*)user += bytes;
  return 0;
}
static int stop_loading(void* user, uint64_t done, uint64_t total) { return (void)user, done > total / 2; }
static int on_finding(void* user, const greta_finding* finding) { return (void)user, finding->key == NULL; }

/* Counts devices, of which none is of the kind hip. */
static int on_device(void* user, const greta_device_info* device) {
  ++*(uint32_t*)user;
  return device->struct_size != sizeof *device || !strncmp(device->id, "hip", 3);
}

static void list_devices(void) {
  greta_runtime_options options = {.struct_size = sizeof options, .without = "hip"};
  uint32_t kinds = 0, devices = 0, expected = 2;
  while (greta_device_kind(kinds, &expected)) NEED(++kinds && expected <= 1);
  NEED(kinds > 0 && !strcmp(greta_device_kind(kinds - 1, NULL), "cpu"));
  NEED(!greta_device_list(&options, on_device, &devices) && devices > 0);
  NEED(!greta_machine_examine_with(&options, on_finding, NULL));
}

static void go_wrong(greta_runtime* runtime, const greta_source* source) {
  greta_model* model = NULL;
  greta_source wrong = {.struct_size = sizeof wrong, .path = "/no/such/file"};
  greta_model_options options = {.struct_size = sizeof options, .source = &wrong};
  NEED(greta_model_open(runtime, &options, &model) == GRETA_ERROR_FILE);
  wrong.path = NULL, wrong.memory = "GGUF\3\0\0\0\377\377\377\377\377\377\377\377", wrong.memory_bytes = 16;
  NEED(greta_model_open(runtime, &options, &model) == GRETA_ERROR_FILE);
  options.source = source, options.progress = stop_loading;
  NEED(greta_model_open(runtime, &options, &model) == GRETA_ERROR_CANCELLED);
  NEED(greta_template_render("{{ 1 // 0 }}", 12, "{}", 2, 0, NULL, 0, &(size_t){0}) != GRETA_OK);
}

static void write_texts(greta_model* model, greta_session* session) {
  int32_t tokens[64];
  size_t count = 0, bytes = 0;
  greta_generate_options options = {
      .struct_size = sizeof options, .max_tokens = 8, .on_token = on_token, .user = &bytes};
  NEED(!greta_tokenizer_encode(greta_model_tokenizer(model), "Once upon a time", 16, GRETA_ENCODE_BOS, tokens,
                               64, &count));
  NEED(!greta_session_generate(session, tokens, count, &options, NULL) && bytes > 0);
  NEED(!greta_session_json_schema(session, "{\"type\": \"array\", \"items\": {\"type\": \"integer\"}}"));
  NEED(!greta_session_generate(session, tokens, count, &options, NULL));
  NEED(greta_session_grammar(session, "root ::= missing", NULL) == GRETA_ERROR_ARGUMENT);
  NEED(!greta_session_grammar(session, NULL, NULL));
  greta_chat* chat = NULL;
  NEED(!greta_chat_open(session, NULL, &chat));
  NEED(!greta_chat_add(chat, &(greta_message){"user", "Tell me of a dog.", NULL}));
  greta_chat_answer_options answer = {.struct_size = sizeof answer, .max_tokens = 8};
  NEED(!greta_chat_answer(chat, &answer, NULL));
  greta_chat_close(chat);
}

static void save_and_restore(greta_session* session) {
  const uint64_t bytes = greta_session_state_bytes(session);
  char *const state = malloc(bytes), *end = state;
  greta_source from = {.struct_size = sizeof from, .memory = state, .memory_bytes = bytes};
  NEED(state && !greta_session_save(session, append, &end) && end == state + bytes);
  greta_session* copy = NULL;
  NEED(!greta_session_fork(session, &copy) && !greta_session_truncate(copy, 0));
  NEED(!greta_session_restore(copy, &from));
  NEED(greta_session_position(copy) == greta_session_position(session));
  state[bytes / 2] ^= 1;
  NEED(greta_session_restore(copy, &from) == GRETA_ERROR_FILE);
  greta_session_close(copy);
  free(state);
}

/* Opens everything, does it all or reads one token, and closes everything. */
static void live(const char* path, int briefly) {
  greta_runtime_options options = {.struct_size = sizeof options, .device = "cpu", .threads = 2};
  greta_source source = {.struct_size = sizeof source, .path = path};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_executor_options executor = {.struct_size = sizeof executor, .context = 256};
  if (briefly) executor.context = 64, executor.step_tokens = 8; /* planning is most of a round */
  greta_session_options of_session = {.struct_size = sizeof of_session, .private_executor = &executor};
  greta_memory_plan plan = {.struct_size = sizeof plan};
  greta_runtime* runtime = NULL;
  greta_file* file = NULL;
  greta_model* model = NULL;
  greta_session* session = NULL;
  NEED(!greta_runtime_open(&options, &runtime));
  NEED(!greta_file_open(&source, &file) && !greta_memory_plan_make(runtime, file, &executor, &plan));
  if (!briefly) go_wrong(runtime, &source);
  NEED(!greta_model_open(runtime, &load, &model));
  NEED(!greta_session_open(model, &of_session, &session));
  const int32_t token = 1;
  NEED(!greta_session_eval(session, &token, 1, GRETA_ROWS_NONE, NULL));
  if (!briefly) {
    NEED(!greta_session_truncate(session, 0));
    write_texts(model, session);
    save_and_restore(session);
  }
  greta_session_close(session);
  greta_model_close(model);
  greta_file_close(file);
  greta_runtime_close(runtime);
}

/* ---- what belongs to the process -------------------------------------------------------------------- */

typedef struct State {
  int threads, files, rounding;
  mode_t mask;
  sigset_t blocked;
  void (*handlers[32])(int);
  int handler_flags[32];
  char locale[256], folder[4096], variables[65536];
} State;

static int entries(const char* path) {
  int count = 0;
  DIR* const folder = opendir(path);
  NEED(folder);
  while (readdir(folder)) ++count;
  closedir(folder);
  return count;
}

static void look(State* state) {
  memset(state, 0, sizeof *state);
  state->threads = entries("/proc/self/task"), state->files = entries("/proc/self/fd");
  state->rounding = fegetround();
  umask(state->mask = umask(0));
  sigprocmask(SIG_SETMASK, NULL, &state->blocked);
  for (int i = 1; i < 32; ++i) {
    struct sigaction action;
    if (sigaction(i, NULL, &action)) continue;
    state->handlers[i] = action.sa_handler, state->handler_flags[i] = action.sa_flags;
  }
  snprintf(state->locale, sizeof state->locale, "%s", setlocale(LC_ALL, NULL));
  NEED(getcwd(state->folder, sizeof state->folder));
  size_t at = 0;
  for (char** variable = environ; *variable && at < sizeof state->variables; ++variable)
    at += (size_t)snprintf(state->variables + at, sizeof state->variables - at, "%s\n", *variable);
}

/* A thread that was joined may be listed for a moment longer. */
static void wait_for_threads(int count) {
  for (int i = 0; i < 1000 && entries("/proc/self/task") > count; ++i) usleep(1000);
}

static long memory_kib(void) {
  char line[256];
  long kib = 0;
  FILE* const status = fopen("/proc/self/status", "r");
  NEED(status);
  while (fgets(line, sizeof line, status))
    if (!strncmp(line, "VmRSS:", 6)) kib = strtol(line + 6, NULL, 10);
  fclose(status);
  return kib;
}

static void be_host(const char* path, const char* small, int rounds) {
  static State before, after;
  uint32_t devices = 0;
  /* Drivers of GPUs that are found keep threads and files of their own from here on. */
  NEED(!greta_device_count(&devices) && !greta_machine_examine(on_finding, NULL));
  list_devices();
  look(&before);
  live(path, 0);
  wait_for_threads(before.threads);
  look(&after);
  NEED(after.threads == before.threads);
  NEED(after.files == before.files);
  NEED(!memcmp(&before, &after, sizeof before));
  long settled = 0;
  for (int round = 0; round < rounds; ++round) {
    if (round == kKeptRounds) settled = memory_kib();
    live(small, 1);
  }
  wait_for_threads(before.threads);
  look(&after);
  NEED(!memcmp(&before, &after, sizeof before));
  if (rounds > kKeptRounds) {
    const long end = memory_kib();
    fprintf(report, "%d rounds: %ld KiB after %d, %ld KiB at the end\n", rounds, settled, kKeptRounds, end);
    NEED(end - settled <= kMostGrowthKiB);
  }
}

int main(int argc, char** argv) {
  int said[2];
  if (argc != 4 || pipe(said) != 0) return 2;
  report = fdopen(dup(2), "w");
  const pid_t child = fork();
  if (child == 0) {
    dup2(said[1], 1), dup2(said[1], 2), close(said[0]), close(said[1]);
    be_host(argv[1], argv[2], atoi(argv[3]));
    exit(0);
  }
  close(said[1]);
  char text[4096];
  size_t bytes = 0;
  ssize_t got;
  while ((got = read(said[0], text + bytes, sizeof text - bytes)) > 0) bytes += (size_t)got;
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 2;
  if (bytes > 0) fprintf(report, "it printed: %.*s\n", (int)bytes, text);
  if (status != 0) fprintf(report, "it ended with status %x\n", (unsigned)status);
  return bytes > 0 || status != 0;
}
