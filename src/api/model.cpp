// The functions of greta.h for memory plans, models and executors.
#include "api/handles.h"

using namespace greta;

// An estimate of what the host keeps in memory: the tables of the vocabulary, and plans.
constexpr uint64_t kHostBytes = 16u << 20;

Status greta::read_executor_options(const greta_executor_options* given, ExecutorOptions* out) {
  greta_executor_options o;
  GRETA_TRY(read_options(given, &o));
  const auto cache_type = [](int type, uint32_t* to) -> Status {
    switch (type) {
      case GRETA_CACHE_F32:
        return *to = 0, Status{};
      case GRETA_CACHE_DEFAULT:
      case GRETA_CACHE_F16:
        return *to = 1, Status{};
      case GRETA_CACHE_Q8_0:
        return *to = 2, Status{};
      default:
        return fail(Code::Argument, "cache type %d is not one of greta_cache_type", type);
    }
  };
  GRETA_TRY(cache_type(enum_number(o.key_type), &out->key_type));
  GRETA_TRY(cache_type(enum_number(o.value_type), &out->value_type));
  out->context = o.context;
  out->sequences = o.sequences;
  out->cache_tokens = o.cache_tokens;
  out->output_rows = o.output_rows;
  out->step_tokens = o.step_tokens;
  out->progress = {o.progress, o.progress_user};
  out->checkpoint_bytes = o.checkpoint_bytes;
  GRETA_TRY(read_flag(o.draft_head, "draft_head", &out->draft_head));
  return read_flag(o.compile_ahead, "compile_ahead", &out->compile_ahead);
}

std::vector<uint64_t> greta::beside_weights(const Model& model, std::vector<uint64_t> free) {
  for (uint32_t d = 0; d < free.size(); ++d) free[d] -= std::min(free[d], model.store.device_bytes(d));
  return free;
}

greta_status greta_memory_plan_make(greta_runtime* runtime, const greta_file* file,
                                    const greta_executor_options* given, greta_memory_plan* out_plan) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    GRETA_TRY(need(file, "file"));
    GRETA_TRY(check_result(out_plan));
    ExecutorOptions options;
    GRETA_TRY(read_executor_options(given, &options));
    Source source;
    GRETA_TRY(file->source.open(&source));
    Model model;
    GRETA_TRY(describe_placed(*runtime, std::move(source), nullptr, options, Log{}, &model));
    greta_memory_plan plan = {};
    plan.weights_bytes = model.store.device_bytes();
    plan.mapped_bytes = model.store.mapped_bytes();
    const std::vector<uint64_t> free = runtime->free_bytes(model);
    ExecutorPlan executor;
    GRETA_TRY(Executor::plan(model, &options, beside_weights(model, free), &executor));
    plan.fits = 1;
    for (uint32_t d = 0; d < free.size(); ++d) {
      plan.free_bytes += free[d];
      plan.fits &= model.store.device_bytes(d) + executor.on[d].total() <= free[d];
    }
    plan.context = executor.context;
    plan.step_tokens = executor.step_tokens;
    const ExecutorBytes bytes = executor.all();
    plan.cache_bytes = bytes.cache;
    plan.arena_bytes = bytes.arena;
    plan.tables_bytes = bytes.tables;
    plan.states_bytes = executor.states * executor.state_bytes;
    plan.checkpoints_bytes = executor.checkpoints * executor.state_bytes;
    plan.draft_head_bytes = model.store.head_bytes() + executor.head_bytes;
    plan.host_bytes = kHostBytes + model.gguf.held_bytes() + model.store.host_bytes();
    plan.total_bytes = plan.weights_bytes + executor.total();
    format_text(plan.device, sizeof plan.device, "%s", model.devices[0].id);
    return write_result(plan, out_plan);
  });
}

static Status refuse_weights(const greta_model& model, uint32_t index, uint64_t bytes, uint64_t free) {
  const Model& m = model.model;
  const DeviceInfo& device = m.devices[index].device->info();
  const bool copied = model.source.given.path && !model.source.given.map;
  std::string or_else;
  if (copied && bytes - m.store.mapping_saves(m.gguf.source(), m.devices) <= free)
    or_else = ", or leave them in its mapped file (greta_source.map; greta-cli without --no-mmap)";
  else if (!device.unified_memory && processor())
    or_else = std::string(", or the device \"") + processor()->name + "\"";
  return fail(Code::Memory,
              "the weights need %s, but only %s are free on %s: take a smaller quantization of the model%s",
              SizeText(bytes).text, SizeText(free).text, device.name, or_else.c_str());
}

static Status open_model(greta_runtime* runtime, const greta_model_options& o, greta_model** out_model) {
  auto model = std::make_unique<greta_model>();
  model->runtime = runtime;
  GRETA_TRY(model->source.store(o.source));
  Source source;
  GRETA_TRY(model->source.open(&source));
  ExecutorOptions executor;
  GRETA_TRY(read_executor_options(o.executor, &executor));
  const bool wanted = executor.draft_head;
  GRETA_TRY(read_flag(o.draft_head, "draft_head", &executor.draft_head));
  if (wanted && !executor.draft_head)
    return fail(Code::Argument,
                "the executor is to have the layer that drafts tokens, but draft_head of the model is 0");
  GRETA_TRY(describe_placed(*runtime, std::move(source), o.placement, executor, runtime->log, &model->model));
  Model& m = model->model;
  m.spans = runtime->spans;
  Span span(m.spans, SpanKind::Load, "load");
  model->counted.resize(m.devices.size());
  const auto count = [&](uint32_t d) { model->counted[d].count(runtime->of(m, d), m.store.device_bytes(d)); };
  const std::vector<uint64_t> free = runtime->free_bytes(m);
  for (uint32_t d = 0; d < free.size(); ++d)
    if (m.store.device_bytes(d) > free[d]) return refuse_weights(*model, d, m.store.device_bytes(d), free[d]);
  for (uint32_t d = 0; d < free.size(); ++d) count(d);
  GRETA_TRY(load_model(&m, {o.progress, o.progress_user}));
  // Loading takes more than was planned if a device refused mapped pages.
  for (uint32_t d = 0; d < free.size(); ++d) count(d);
  span.event.bytes = m.store.file_bytes();
  model->tokenizer.tokenizer = model->model.tokenizer.get();
  model->tokenizer.gguf = &model->model.gguf;
  GRETA_TRY(model->tokenizer.chat.open(model->model.gguf, *model->model.tokenizer, runtime->log));
  model->sampling = sampling_defaults(model->model.gguf);
  *out_model = model.release();
  return {};
}

// Of several devices on which a model is placed by memory, those that are lost meanwhile are left out.
greta_status greta_model_open(greta_runtime* runtime, const greta_model_options* given,
                              greta_model** out_model) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    GRETA_TRY(need(given, "options"));
    GRETA_TRY(need(out_model, "out_model"));
    greta_model_options o;
    GRETA_TRY(read_options(given, &o));
    GRETA_TRY(check_reserved(o.reserved));
    GRETA_TRY(check_reserved(o.reserved2));
    const Status status = open_model(runtime, o, out_model);
    const bool may_do_without =
        status.code == Code::Device && runtime->devices.size() > 1 && placed_by_memory(o.placement);
    if (!may_do_without) return status;
    const std::string why = error_text();
    return leave_out_lost(*runtime) ? open_model(runtime, o, out_model)
                                    : fail(status.code, "%s", why.c_str());
  });
}

void greta_model_close(greta_model* model) { close_object(model); }

const greta_tokenizer* greta_model_tokenizer(const greta_model* model) {
  return model ? &model->tokenizer : nullptr;
}

greta_status greta_model_describe(const greta_model* model, greta_model_info* out_info) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(model, "model"));
    const Model& m = model->model;
    greta_model_info info = {};
    info.vocab_size = m.shape.vocab;
    info.architecture = m.arch->name;
    info.name = m.name.c_str();
    format_text(info.type, sizeof info.type, "%s", file_type_name(m.gguf));
    info.context = m.shape.context;
    info.layers = m.shape.layers;
    info.width = m.shape.width;
    info.heads = m.shape.attending().heads;
    info.kv_heads = m.shape.attending().kv_heads;
    info.parameters = m.store.parameters();
    info.weights_bytes = m.store.file_bytes();
    info.token_bytes = m.store.token_bytes();
    info.identity = m.identity;
    info.recurrent_layers = m.shape.recurrent_layers;
    return write_result(info, out_info);
  });
}

Status greta::open_executor(greta_model& model, const greta_executor_options* given,
                            std::shared_ptr<CountedExecutor>* out) {
  ExecutorOptions options;
  GRETA_TRY(read_executor_options(given, &options));
  if (options.draft_head && !model.model.shape.heads)
    return fail(Code::Argument,
                "an executor with the layer that drafts tokens, but the model was opened without it "
                "(draft_head)");
  auto shared = std::make_shared<CountedExecutor>();
  shared->runtime = model.runtime;
  shared->model = &model;
  const std::vector<uint64_t> free = model.runtime->free_bytes(model.model);
  GRETA_TRY(Executor::open(model.model, options, free, &shared->executor));
  shared->counted.resize(free.size());
  for (uint32_t d = 0; d < free.size(); ++d)
    shared->counted[d].count(model.runtime->of(model.model, d), shared->executor->plan().on[d].total());
  *out = std::move(shared);
  return {};
}

greta_status greta_executor_open(greta_model* model, const greta_executor_options* options,
                                 greta_executor** out_executor) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(model));
    GRETA_TRY(need(out_executor, "out_executor"));
    auto executor = std::make_unique<greta_executor>();
    executor->model = model;
    GRETA_TRY(open_executor(*model, options, &executor->shared));
    *out_executor = executor.release();
    return {};
  });
}

void greta_executor_close(greta_executor* executor) { close_object(executor); }
