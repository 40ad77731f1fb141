/* chat MODEL: a conversation in a terminal or a pipe, a line for each message.
 * The answer is printed as it comes, its reasoning in brackets; Ctrl-C stops the answer and not the program.
 * Only what is new since the last turn is computed. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "greta.h"

static greta_session* session;

static void stop_answer(int number) {
  (void)number;
  greta_session_cancel(session); /* may be called from a signal handler */
}

static int print_part(void* user, const greta_chat_event* event) {
  greta_chat_part* last = user;
  if (event->part != GRETA_CHAT_TEXT && event->part != GRETA_CHAT_REASONING) return 0;
  if (event->part != *last) fputs(event->part == GRETA_CHAT_REASONING ? "[" : "]\n", stdout);
  *last = event->part;
  fwrite(event->text, 1, event->bytes, stdout);
  return fflush(stdout);
}

static int answer_lines(greta_chat* chat) {
  char line[4096];
  while (fgets(line, sizeof line, stdin)) {
    greta_message message = {.role = "user", .content = line};
    greta_chat_part last = GRETA_CHAT_TEXT;
    greta_chat_answer_options options = {
        .struct_size = sizeof options, .max_tokens = 200, .on_event = print_part, .user = &last};
    greta_chat_result result = {.struct_size = sizeof result};
    line[strcspn(line, "\n")] = 0;
    if (greta_chat_add(chat, &message) || greta_chat_answer(chat, &options, &result)) return 1;
    printf("%s\n", last == GRETA_CHAT_REASONING ? "]" : "");
    fprintf(stderr, "%u tokens, %u of %u of the prompt were there already\n", result.generated_tokens,
            result.reused_tokens, result.prompt_tokens);
  }
  return 0;
}

int main(int argc, char** argv) {
  greta_source source = {.struct_size = sizeof source, .path = argc > 1 ? argv[1] : "model.gguf"};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_runtime* runtime = NULL; /* without options: the best GPU that works, else the CPU */
  greta_model* model = NULL;
  greta_chat* chat = NULL;
  int failed = greta_runtime_open(NULL, &runtime) || greta_model_open(runtime, &load, &model) ||
               greta_session_open(model, NULL, &session) || greta_chat_open(session, NULL, &chat);
  if (!failed) {
    signal(SIGINT, stop_answer);
    failed = answer_lines(chat);
    signal(SIGINT, SIG_DFL);
  }
  if (failed) fprintf(stderr, "%s\n", greta_error_text());
  greta_chat_close(chat), greta_session_close(session), greta_model_close(model);
  greta_runtime_close(runtime);
  return failed;
}
