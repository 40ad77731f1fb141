/* file_limit MODEL: a limit on the size of files costs a service its pages and nothing else. It sends
 * SIGXFSZ, which ends a process. The host's own signal stays as it was: its mask, its handler, and one that
 * waits. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "greta.h"

enum { kPromptTokens = 200 };

static char folder[] = "/tmp/greta-file-limit-XXXXXX";
static greta_model* model;
static int handled, warnings;

static void on_signal(int signal) { handled += signal == SIGXFSZ; }
static void on_log(void* user, greta_log_level level, const char* text) {
  (void)user;
  warnings += level == GRETA_LOG_WARNING && strstr(text, "not kept") != NULL;
}

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s; %s\n", what, greta_error_text());
  exit(1);
}

static int waits(void) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGXFSZ);
}
static int blocked(void) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  return sigismember(&mask, SIGXFSZ);
}

/* Closing the service writes its pages on this thread. */
static void serve_and_close(void) {
  static int32_t tokens[kPromptTokens];
  greta_executor_options sizes = {.struct_size = sizeof sizes, .context = 256};
  greta_service_options options = {
      .struct_size = sizeof options, .executor = &sizes, .own_thread = 1, .page_folder = folder};
  greta_request_options ask = {.struct_size = sizeof ask,
                               .tokens = tokens,
                               .token_count = kPromptTokens,
                               .max_tokens = 2,
                               .ignore_end = 1};
  greta_request_event event = {.struct_size = sizeof event};
  greta_service* service = NULL;
  greta_request* request = NULL;
  for (int i = 0; i < kPromptTokens; ++i) tokens[i] = 3 + i;
  need(!greta_service_open(model, &options, &service), "service");
  need(!greta_service_add(service, &ask, &request), "add");
  do need(!greta_request_next(request, UINT64_MAX, &event), "next");
  while (event.kind != GRETA_EVENT_END);
  need(!greta_request_finish(request, NULL), "finish");
  greta_request_close(request);
  greta_service_close(service);
}

int main(int argc, char** argv) {
  greta_runtime_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu", .threads = 2, .log = on_log};
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  const struct rlimit limit = {4096, RLIM_INFINITY};
  greta_runtime* runtime = NULL;
  sigset_t file_size;
  need(mkdtemp(folder) != NULL, "a folder");
  need(!greta_runtime_open(&on_cpu, &runtime) && !greta_model_open(runtime, &load, &model), "model");
  need(!setrlimit(RLIMIT_FSIZE, &limit), "a limit");
  serve_and_close(); /* the signal would end the process */
  need(warnings == 1 && !waits() && !blocked(), "one warning, and the mask as before");

  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGXFSZ, &action, NULL);
  serve_and_close();
  need(warnings == 2 && handled == 0 && !waits() && !blocked(), "no signal for the handler");

  sigemptyset(&file_size);
  sigaddset(&file_size, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &file_size, NULL);
  raise(SIGXFSZ); /* the host's own */
  serve_and_close();
  need(warnings == 3 && waits() && blocked(), "the host's own signal waits");
  pthread_sigmask(SIG_UNBLOCK, &file_size, NULL);
  need(handled == 1, "the host's own signal comes once");
  greta_model_close(model), greta_runtime_close(runtime);
  need(!rmdir(folder), "nothing is left in the folder");
  return 0;
}
