/* plan MODEL: what greta_plan_explain tells of a step, before anything is loaded. C99 and greta.h alone. */
#include <stdio.h>
#include <string.h>

#include "greta.h"

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) return printf("line %d: %s (%s)\n", __LINE__, #condition, greta_error_text()), 1; \
  } while (0)

typedef struct Seen {
  uint32_t launches, attentions, stages, out_of_order, without_reason, of_lower_rank, passed, stop_after,
      told;
  uint64_t bytes, flops;
  char last_stage[32];
} Seen;

static int look(void* user, const greta_plan_launch* launch) {
  Seen* seen = user;
  uint32_t i;
  if (launch->barrier_stage + 1 < seen->stages || launch->barrier_stage > seen->stages) ++seen->out_of_order;
  seen->stages = launch->barrier_stage + 1;
  seen->attentions += strstr(launch->ops, "attention") != NULL;
  seen->bytes += launch->bytes, seen->flops += launch->flops;
  for (i = 0; i < launch->passed_count; ++i) {
    seen->without_reason += launch->passed[i].reason[0] == 0 || launch->passed[i].kernel[0] == 0;
    seen->of_lower_rank += launch->passed[i].rank <= launch->rank;
  }
  seen->passed += launch->passed_count;
  seen->told += launch->machine_code[0] != 0;
  snprintf(seen->last_stage, sizeof seen->last_stage, "%s", launch->stage);
  return ++seen->launches == seen->stop_after;
}

static greta_status explain(greta_runtime* runtime, const greta_file* file, uint32_t tokens, uint32_t depth,
                            Seen* seen) {
  greta_plan_options options = {.struct_size = sizeof options, .tokens = tokens, .depth = depth};
  const uint32_t stop_after = seen->stop_after;
  memset(seen, 0, sizeof *seen);
  seen->stop_after = stop_after;
  options.on_launch = look, options.user = seen;
  return greta_plan_explain(runtime, file, &options);
}

/* What a measured step says of the same launches. */
static void add_stage(void* user, const greta_profile_stage* stage) {
  Seen* seen = user;
  seen->launches += stage->launches, seen->bytes += stage->bytes, seen->flops += stage->flops;
}

int main(int count, char** arguments) {
  greta_runtime_options open = {.struct_size = sizeof open, .device = "cpu", .threads = 1};
  greta_runtime* runtime = NULL;
  greta_file* file = NULL;
  greta_model* model = NULL;
  greta_session* session = NULL;
  const char* const path = count > 1 ? arguments[1] : "";
  greta_source source = {.struct_size = sizeof source, .path = path};
  greta_model_options load = {.struct_size = sizeof load, .source = &source};
  greta_plan_options options = {.struct_size = sizeof options};
  greta_model_info info = {.struct_size = sizeof info};
  Seen one = {0}, deep = {0}, many = {0}, few = {0}, measured = {0};
  const int32_t token = 1;

  CHECK(greta_runtime_open(&open, &runtime) == GRETA_OK);
  CHECK(greta_file_open(&source, &file) == GRETA_OK);

  CHECK(greta_plan_explain(NULL, file, &options) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_plan_explain(runtime, NULL, &options) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_plan_explain(runtime, file, NULL) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_plan_explain(runtime, file, &options) == GRETA_ERROR_ARGUMENT);
  CHECK(strstr(greta_error_text(), "on_launch is NULL"));
  options.on_launch = look, options.user = &few, options.machine_code = 2;
  CHECK(greta_plan_explain(runtime, file, &options) == GRETA_ERROR_ARGUMENT);
  options.machine_code = 1; /* kernels of the CPU are functions, of which no driver tells anything */
  CHECK(greta_plan_explain(runtime, file, &options) == GRETA_OK && few.launches > 0 && few.told == 0);
  CHECK(explain(runtime, file, 513, 0, &few) == GRETA_ERROR_ARGUMENT);
  CHECK(explain(runtime, file, 1, 1u << 30, &few) == GRETA_ERROR_FULL);
  CHECK(few.launches == 0);
  few.stop_after = 2;
  CHECK(explain(runtime, file, 1, 0, &few) == GRETA_ERROR_CANCELLED);
  CHECK(few.launches == 2);

  CHECK(explain(runtime, file, 0, 0, &one) == GRETA_OK);
  CHECK(explain(runtime, file, 1, 200, &deep) == GRETA_OK);
  CHECK(explain(runtime, file, 64, 0, &many) == GRETA_OK);
  CHECK(one.out_of_order + deep.out_of_order + many.out_of_order == 0);
  CHECK(one.without_reason + many.without_reason + one.of_lower_rank + many.of_lower_rank == 0);
  CHECK(!strcmp(one.last_stage, "sample"));
  CHECK(one.stages > 5 && one.stages <= one.launches);
  CHECK(deep.launches == one.launches && deep.bytes > one.bytes && deep.flops > one.flops);
  CHECK(many.flops > 20 * one.flops && many.bytes < 20 * one.bytes);
  /* The kernels of long prompts have higher ranks and do not take a single token. */
  CHECK(one.passed > 0);

  /* The plan is that of a session: as many launches, with the same work. */
  CHECK(greta_model_open(runtime, &load, &model) == GRETA_OK);
  CHECK(greta_model_describe(model, &info) == GRETA_OK);
  CHECK(one.attentions == info.layers);
  CHECK(greta_session_open(model, NULL, &session) == GRETA_OK);
  CHECK(greta_session_profile(session, &token, 1, add_stage, &measured) == GRETA_OK);
  CHECK(measured.launches == one.launches && measured.bytes == one.bytes && measured.flops == one.flops);

  greta_session_close(session);
  greta_model_close(model);
  greta_file_close(file);
  greta_runtime_close(runtime);
  return 0;
}
