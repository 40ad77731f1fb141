// The functions of greta.h for sessions and generation.
#include "api/handles.h"

using namespace greta;

static_assert(uint32_t(Pooling::Mean) == GRETA_POOLING_MEAN && uint32_t(Pooling::None) == GRETA_POOLING_NONE);
static_assert(uint32_t(OutputRows::All) == GRETA_ROWS_ALL &&
              uint32_t(StopReason::String) == GRETA_STOP_STRING &&
              uint32_t(StopReason::Unread) == GRETA_STOP_UNREAD);

// The engine's session keeps a pointer to its executor, and the counted executor keeps that alive.
static Status open_on(std::shared_ptr<CountedExecutor> executor, greta_session** out) {
  auto session = std::make_unique<greta_session>();
  std::shared_ptr<Executor> engine(executor, executor->executor.get());
  session->executor = std::move(executor);
  GRETA_TRY(Session::open(std::move(engine), &session->session));
  *out = session.release();
  return {};
}

greta_status greta_session_open(greta_model* model, const greta_session_options* given,
                                greta_session** out_session) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(model));
    GRETA_TRY(need(out_session, "out_session"));
    greta_session_options o;
    GRETA_TRY(read_options(given, &o));
    GRETA_TRY(check_reserved(o.reserved));
    if (o.executor && o.private_executor)
      return fail(Code::Argument, "executor and private_executor are both set: set at most one of them");
    if (o.executor && o.executor->model != model)
      return fail(Code::Argument, "the executor belongs to another model");
    std::shared_ptr<CountedExecutor> executor = o.executor ? o.executor->shared : nullptr;
    if (!executor) GRETA_TRY(open_executor(*model, o.private_executor, &executor));
    return open_on(std::move(executor), out_session);
  });
}

void greta_session_close(greta_session* session) { close_object(session); }

greta_status greta_session_fork(greta_session* session, greta_session** out_session) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(session));
    GRETA_TRY(need(out_session, "out_session"));
    auto child = std::make_unique<greta_session>();
    child->executor = session->executor;
    GRETA_TRY(session->session->fork(&child->session));
    *out_session = child.release();
    return {};
  });
}

uint32_t greta_session_position(const greta_session* s) { return s ? s->session->position() : 0; }
uint32_t greta_session_context(const greta_session* s) { return s ? s->session->context() : 0; }

greta_status greta_session_truncate(greta_session* session, uint32_t position) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(session, "session"));
    return session->session->truncate(position);
  });
}

const int32_t* greta_session_tokens(const greta_session* s) {
  return s ? s->session->tokens().data() : nullptr;
}
uint64_t greta_session_state_bytes(const greta_session* s) { return s ? s->session->state_bytes() : 0; }

greta_status greta_session_save(greta_session* session, greta_write_callback write, void* user) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(session));
    if (!write) return fail(Code::Argument, "write is NULL");
    CWriter writer{write, user};
    return session->session->save(CWriter::write, &writer);
  });
}

greta_status greta_session_restore(greta_session* session, const greta_source* source) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(session));
    StoredSource stored;
    GRETA_TRY(stored.store(source));
    Source opened;
    GRETA_TRY(stored.open(&opened));
    return session->session->restore(opened);
  });
}

greta_status greta_session_eval(greta_session* session, const int32_t* tokens, size_t count, greta_rows rows,
                                const float** out_logits) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(session));
    GRETA_TRY(need(tokens, "tokens"));
    const int number = enum_number(rows);
    if (number < GRETA_ROWS_NONE || number > GRETA_ROWS_ALL)
      return fail(Code::Argument, "rows is %d, which is not one of greta_rows", number);
    if (rows != GRETA_ROWS_NONE) GRETA_TRY(need(out_logits, "out_logits"));
    return session->session->eval({tokens, count}, OutputRows(rows), out_logits);
  });
}

Status greta::read_embed(const Model& model, const greta_embed_options* given, EmbedOptions* out) {
  greta_embed_options o;
  GRETA_TRY(read_options(given, &o));
  GRETA_TRY(check_reserved(o.reserved));
  GRETA_TRY(read_flag(o.raw, "raw", &out->raw));
  const int number = enum_number(o.pooling);
  if (number < GRETA_POOLING_DEFAULT || number > GRETA_POOLING_NONE)
    return fail(Code::Argument, "pooling is %d, which is not one of greta_pooling", number);
  if (number == GRETA_POOLING_DEFAULT) return model_pooling(model, &out->pooling);
  out->pooling = Pooling(number);
  return {};
}

greta_status greta_session_embed(greta_session* session, const int32_t* tokens, size_t count,
                                 const greta_embed_options* given, const float** out_embedding) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(session));
    GRETA_TRY(need(tokens, "tokens"));
    GRETA_TRY(need(out_embedding, "out_embedding"));
    EmbedOptions options;
    GRETA_TRY(read_embed(session->executor->executor->model(), given, &options));
    std::span<const float> embedding;
    GRETA_TRY(session->session->embed({tokens, count}, options, &embedding));
    *out_embedding = embedding.data();
    return {};
  });
}

namespace {
struct StageCallback {
  void (*call)(void* user, const greta_profile_stage* stage);
  void* user;
};
void report_stage(void* context, const Executor::Stage& from) {
  const auto& callback = *static_cast<const StageCallback*>(context);
  greta_profile_stage stage = {};
  stage.struct_size = sizeof stage;
  stage.launches = from.launches;
  stage.kernel = from.kernel;
  stage.stage = from.part;
  stage.ns = from.ns;
  stage.bytes = from.bytes;
  stage.flops = from.flops;
  call_back("on_stage", [&] { callback.call(callback.user, &stage); });
}
}  // namespace

greta_status greta_session_profile(greta_session* session, const int32_t* tokens, size_t count,
                                   void (*on_stage)(void* user, const greta_profile_stage* stage),
                                   void* user) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(session));
    GRETA_TRY(need(tokens, "tokens"));
    if (!on_stage) return fail(Code::Argument, "on_stage is NULL");
    StageCallback callback{on_stage, user};
    return session->session->profile({tokens, count}, report_stage, &callback);
  });
}

static Status check_batch(size_t count) {
  if (count <= kMaxStepSequences) return {};
  return fail(Code::Argument, "the batch has %zu items, but an executor has at most %u sessions", count,
              kMaxStepSequences);
}

greta_status greta_batch_eval(greta_batch_item* items, size_t count) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(items, "items"));
    GRETA_TRY(check_batch(count));
    std::vector<Session::Item> list;
    for (size_t i = 0; i < count; ++i) {
      GRETA_TRY(need_device(items[i].session));
      GRETA_TRY(need(items[i].tokens, "an item's tokens"));
      list.push_back({items[i].session->session.get(), {items[i].tokens, items[i].count}, nullptr});
    }
    GRETA_TRY(Session::eval_batch(list));
    for (size_t i = 0; i < count; ++i) items[i].logits = list[i].logits;
    return {};
  });
}

Status greta::read_stops(const char* const* given, size_t count, std::vector<std::string_view>* out) {
  if (count) GRETA_TRY(need(given, "stop_strings"));
  if (count > kMaxStopStrings)
    return fail(Code::Argument, "%zu stop strings are given, and at most %u are allowed", count,
                kMaxStopStrings);
  for (size_t i = 0; i < count; ++i) {
    GRETA_TRY(need(given[i], "a stop string"));
    out->push_back(given[i]);
  }
  return {};
}

static GenerateOptions options_of(greta_generate_options& given) {
  GenerateOptions options;
  options.max_tokens = given.max_tokens;
  options.user = &given;
  if (given.on_token)
    options.on_token = [](void* self, int32_t token, const char* text, size_t bytes) {
      const auto& o = *static_cast<const greta_generate_options*>(self);
      return call_back("on_token", [&] { return o.on_token(o.user, token, text, bytes); });
    };
  if (given.on_prompt)
    options.on_prompt = [](void* self, uint32_t done, uint32_t total) {
      const auto& o = *static_cast<const greta_generate_options*>(self);
      return call_back("on_prompt", [&] { return o.on_prompt(o.user, done, total); });
    };
  return options;
}

namespace {
// A caller's options, as the engine takes them. The object must not move.
struct ReadOptions {
  greta_generate_options given;
  std::vector<std::string_view> stops;
  GenerateOptions options;

  Status read(const greta_generate_options* from, const greta_generate_result* result) {
    if (result) GRETA_TRY(check_result(result));
    GRETA_TRY(read_options(from, &given));
    GRETA_TRY(check_reserved(given.reserved));
    options = options_of(given);
    GRETA_TRY(read_flag(given.ignore_end, "ignore_end", &options.ignore_end));
    bool shift = false;
    GRETA_TRY(read_flag(given.shift, "shift", &shift));
    if (shift) options.on_full = forgets_half(given.keep_tokens);
    GRETA_TRY(read_stops(given.stop_strings, given.stop_count, &stops));
    options.stops = stops;
    return {};
  }
};

Status give_result(const GenerateResult& r, greta_generate_result* out) {
  if (!out) return {};
  return write_result(
      greta_generate_result{0, greta_stop_reason(r.reason), r.prompt_tokens, r.generated_tokens, r.prompt_ns,
                            r.generate_ns, r.stop_string, r.forgotten_tokens, r.drafted_tokens,
                            r.accepted_tokens, r.reread_tokens, r.draw_steps, r.draft_stopped},
      out);
}
}  // namespace

greta_status greta_session_generate(greta_session* session, const int32_t* tokens, size_t count,
                                    const greta_generate_options* given, greta_generate_result* out_result) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(session));
    GRETA_TRY(need(tokens, "tokens"));
    ReadOptions read;
    GRETA_TRY(read.read(given, out_result));
    GenerateResult r;
    GRETA_TRY(session->session->generate({tokens, count}, read.options, &r));
    return give_result(r, out_result);
  });
}

greta_status greta_batch_generate(greta_generate_item* items, size_t count) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(items, "items"));
    GRETA_TRY(check_batch(count));
    std::vector<ReadOptions> read(count);
    std::vector<Session::Generation> list;
    for (size_t i = 0; i < count; ++i) {
      GRETA_TRY(need_device(items[i].session));
      GRETA_TRY(need(items[i].tokens, "an item's tokens"));
      GRETA_TRY(within(read[i].read(items[i].options, items[i].result), "item %zu", i));
      list.push_back({items[i].session->session.get(), {items[i].tokens, items[i].count}, read[i].options});
    }
    GRETA_TRY(Session::generate_batch(list));
    for (size_t i = 0; i < count; ++i) {
      items[i].status = to_c(list[i].status);
      format_text(items[i].error, sizeof items[i].error, "%s", list[i].error.c_str());
      if (list[i].status.ok()) GRETA_TRY(give_result(list[i].result, items[i].result));
    }
    return {};
  });
}

void greta_session_cancel(greta_session* session) {
  if (session) session->session->cancel();
}
