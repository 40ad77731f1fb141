/* spans MODEL: what a program hears of the library's work through greta_runtime_options.on_span, and that the
 * texts are the same with it. C99 and greta.h alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "greta.h"

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) return printf("line %d: %s (%s)\n", __LINE__, #condition, greta_error_text()), 1; \
  } while (0)

enum { kTokens = 24, kMostSpans = 20000, kKinds = 16 };

typedef struct Heard {
  greta_span* spans; /* [count], with names that are not kept */
  uint32_t count, of_kind[kKinds], unnamed, backward;
} Heard;

static void hear(void* user, const greta_span* span) {
  Heard* heard = user;
  if (heard->count == kMostSpans || (int)span->kind >= kKinds) return;
  heard->unnamed += !span->name[0] || (span->kind == GRETA_SPAN_LAUNCH && !span->stage[0]);
  heard->backward += span->end_ns < span->begin_ns || span->struct_size != sizeof *span;
  heard->spans[heard->count++] = *span;
  ++heard->of_kind[span->kind];
}

typedef struct Text {
  int32_t tokens[kTokens];
  uint32_t count;
} Text;

static int keep(void* user, int32_t token, const char* text, size_t bytes) {
  Text* to = user;
  (void)text, (void)bytes;
  if (token >= 0 && to->count < kTokens) to->tokens[to->count++] = token;
  return 0;
}

/* Opens everything, writes a text, and closes everything. `grammar` makes the host choose the tokens. */
static int write_text(const char* path, Heard* heard, uint32_t launches, const char* grammar, Text* text) {
  greta_runtime_options open = {.struct_size = sizeof open, .device = "cpu", .threads = 2};
  greta_source source = {.struct_size = sizeof source, .path = path};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_generate_options write = {.struct_size = sizeof write, .max_tokens = kTokens, .ignore_end = 1};
  greta_runtime* runtime = NULL;
  greta_model* model = NULL;
  greta_session* session = NULL;
  int32_t prompt[64];
  size_t count = 0;
  write.on_token = keep, write.user = text;
  if (heard) open.on_span = hear, open.span_user = heard;
  open.span_launches = launches;
  memset(text, 0, sizeof *text);
  CHECK(greta_runtime_open(&open, &runtime) == GRETA_OK);
  CHECK(greta_model_open(runtime, &load, &model) == GRETA_OK);
  CHECK(greta_session_open(model, NULL, &session) == GRETA_OK);
  CHECK(greta_tokenizer_encode(greta_model_tokenizer(model), "Once upon a time", 16, GRETA_ENCODE_BOS, prompt,
                               64, &count) == GRETA_OK);
  if (grammar) CHECK(greta_session_grammar(session, grammar, "root") == GRETA_OK);
  CHECK(greta_session_generate(session, prompt, count, &write, NULL) == GRETA_OK);
  greta_session_close(session);
  greta_model_close(model);
  greta_runtime_close(runtime);
  return 0;
}

static int inside(const greta_span* inner, const greta_span* outer) {
  return outer->begin_ns <= inner->begin_ns && inner->end_ns <= outer->end_ns;
}

static const greta_span* step_of(const Heard* heard, const greta_span* span) {
  uint32_t i;
  for (i = 0; i < heard->count; ++i)
    if (heard->spans[i].kind == GRETA_SPAN_STEP && heard->spans[i].number == span->number)
      return &heard->spans[i];
  return NULL;
}

/* Spans of a step lie in it; launches follow each other. */
static int check_nesting(const Heard* heard) {
  uint64_t last = 0, launched = 0, waited = 0;
  uint32_t i;
  for (i = 0; i < heard->count; ++i) {
    const greta_span* span = &heard->spans[i];
    if (span->kind == GRETA_SPAN_RECORD || span->kind == GRETA_SPAN_WAIT || span->kind == GRETA_SPAN_LAUNCH) {
      CHECK(step_of(heard, span) && inside(span, step_of(heard, span)));
      CHECK((span->device == UINT32_MAX) == (span->kind != GRETA_SPAN_LAUNCH));
    }
    if (span->kind == GRETA_SPAN_WAIT) waited += span->end_ns - span->begin_ns;
    if (span->kind != GRETA_SPAN_LAUNCH) continue;
    CHECK(span->begin_ns >= last && span->launches > 0 && span->bytes > 0);
    last = span->end_ns;
    launched += span->end_ns - span->begin_ns;
  }
  CHECK(launched <= waited); /* The CPU device works while the host waits. */
  return 0;
}

int main(int count, char** arguments) {
  const char* const path = count > 1 ? arguments[1] : "";
  const char* const grammar = "root ::= [a-z ]+";
  greta_runtime_options bad = {.struct_size = sizeof bad, .device = "cpu"};
  greta_runtime* runtime = NULL;
  Heard host = {0}, all = {0}, with_grammar = {0};
  Text silent, told, timed, bound, bound_told;
  host.spans = malloc(kMostSpans * sizeof *host.spans);
  all.spans = malloc(kMostSpans * sizeof *all.spans);
  with_grammar.spans = malloc(kMostSpans * sizeof *with_grammar.spans);
  CHECK(host.spans && all.spans && with_grammar.spans);

  bad.span_launches = 2;
  CHECK(greta_runtime_open(&bad, &runtime) == GRETA_ERROR_ARGUMENT);
  CHECK(strstr(greta_error_text(), "span_launches is 2"));
  bad.span_launches = 0, bad.reserved2 = 1;
  CHECK(greta_runtime_open(&bad, &runtime) == GRETA_ERROR_UNSUPPORTED);

  if (write_text(path, NULL, 0, NULL, &silent) || write_text(path, &host, 0, NULL, &told) ||
      write_text(path, &all, 1, NULL, &timed) || write_text(path, NULL, 0, grammar, &bound) ||
      write_text(path, &with_grammar, 1, grammar, &bound_told))
    return 1;
  CHECK(silent.count == kTokens);
  CHECK(!memcmp(&silent, &told, sizeof told) && !memcmp(&silent, &timed, sizeof timed));
  CHECK(!memcmp(&bound, &bound_told, sizeof bound));

  CHECK(host.unnamed + host.backward + all.unnamed + all.backward == 0);
  CHECK(host.of_kind[GRETA_SPAN_LOAD] == 1 && host.of_kind[GRETA_SPAN_PLAN] >= 2);
  CHECK(host.of_kind[GRETA_SPAN_COMPILE] >= host.of_kind[GRETA_SPAN_PLAN]);
  CHECK(host.of_kind[GRETA_SPAN_STEP] >= kTokens && host.of_kind[GRETA_SPAN_STEP] <= kTokens + 2);
  CHECK(host.of_kind[GRETA_SPAN_RECORD] == host.of_kind[GRETA_SPAN_STEP]);
  CHECK(host.of_kind[GRETA_SPAN_SUBMIT] == host.of_kind[GRETA_SPAN_STEP]);
  CHECK(host.of_kind[GRETA_SPAN_CALLBACK] >= kTokens);
  CHECK(host.of_kind[GRETA_SPAN_LAUNCH] == 0 && host.of_kind[GRETA_SPAN_SAMPLE] == 0);
  CHECK(all.of_kind[GRETA_SPAN_STEP] == host.of_kind[GRETA_SPAN_STEP]);
  CHECK(all.of_kind[GRETA_SPAN_LAUNCH] > 5 * all.of_kind[GRETA_SPAN_STEP]);
  CHECK(with_grammar.of_kind[GRETA_SPAN_SAMPLE] >= kTokens);
  CHECK(with_grammar.of_kind[GRETA_SPAN_GRAMMAR] == with_grammar.of_kind[GRETA_SPAN_SAMPLE]);
  if (check_nesting(&host) || check_nesting(&all) || check_nesting(&with_grammar)) return 1;
  free(host.spans), free(all.spans), free(with_grammar.spans);
  return 0;
}
