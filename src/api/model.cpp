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
  GRETA_TRY(check_reserved(o.reserved));
  return read_flag(o.compile_ahead, "compile_ahead", &out->compile_ahead);
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
    GRETA_TRY(describe_model(std::move(source), *runtime->kernels, runtime->exact, Log{}, &model));
    greta_memory_plan plan = {};
    plan.free_bytes = runtime->free_bytes();
    plan.weights_bytes = model.store.device_bytes();
    plan.mapped_bytes = model.store.mapped_bytes();
    ExecutorPlan executor;
    const uint64_t beside = plan.free_bytes > plan.weights_bytes ? plan.free_bytes - plan.weights_bytes : 0;
    GRETA_TRY(Executor::plan(model, &options, beside, &executor));
    plan.context = executor.context;
    plan.step_tokens = executor.step_tokens;
    const ExecutorBytes bytes = executor.all();
    plan.cache_bytes = bytes.cache;
    plan.arena_bytes = bytes.arena;
    plan.tables_bytes = bytes.tables;
    plan.host_bytes = kHostBytes + model.gguf.held_bytes();
    plan.total_bytes = plan.weights_bytes + executor.total();
    plan.fits = plan.total_bytes <= plan.free_bytes;
    format_text(plan.device, sizeof plan.device, "%s", runtime->device_id);
    return write_result(plan, out_plan);
  });
}

static Status refuse_weights(const greta_model& model, uint64_t bytes, uint64_t free) {
  const DeviceInfo& device = model.runtime->device->info();
  const Model& m = model.model;
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

greta_status greta_model_open(greta_runtime* runtime, const greta_model_options* given,
                              greta_model** out_model) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(runtime));
    GRETA_TRY(need(given, "options"));
    GRETA_TRY(need(out_model, "out_model"));
    greta_model_options o;
    GRETA_TRY(read_options(given, &o));
    GRETA_TRY(check_reserved(o.reserved));
    auto model = std::make_unique<greta_model>();
    model->runtime = runtime;
    GRETA_TRY(model->source.store(o.source));
    Source source;
    GRETA_TRY(model->source.open(&source));
    GRETA_TRY(
        describe_model(std::move(source), *runtime->kernels, runtime->exact, runtime->log, &model->model));
    const uint64_t bytes = model->model.store.device_bytes(), free = runtime->free_bytes();
    if (bytes > free) return refuse_weights(*model, bytes, free);
    model->counted.count(runtime, bytes);
    GRETA_TRY(load_model(&model->model, {o.progress, o.progress_user}));
    // Loading takes more than was planned if the device refused mapped pages.
    model->counted.count(runtime, model->model.store.device_bytes());
    model->tokenizer.tokenizer = model->model.tokenizer.get();
    model->tokenizer.gguf = &model->model.gguf;
    GRETA_TRY(model->tokenizer.chat.open(model->model.gguf, *model->model.tokenizer, runtime->log));
    model->sampling = sampling_defaults(model->model.gguf);
    *out_model = model.release();
    return {};
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
    return write_result(info, out_info);
  });
}

Status greta::open_executor(greta_model& model, const greta_executor_options* given,
                            std::shared_ptr<CountedExecutor>* out) {
  ExecutorOptions options;
  GRETA_TRY(read_executor_options(given, &options));
  auto shared = std::make_shared<CountedExecutor>();
  GRETA_TRY(Executor::open(model.model, options, model.runtime->free_bytes(), &shared->executor));
  shared->counted.count(model.runtime, shared->executor->plan().total());
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
