// The functions of greta.h for services and their requests.
#include "api/request_options.h"

using namespace greta;

using Kind = RequestEvent::Kind;
static_assert(kStopReasons == GRETA_STOP_UNREAD + 1 &&
              kStopReasons <= std::extent_v<decltype(greta_service_info::ended)>);
constexpr greta_event_kind kEventKinds[] = {
    GRETA_EVENT_TEXT,     GRETA_EVENT_REASONING,  GRETA_EVENT_TOOL_CALL,
    GRETA_EVENT_PROMPT,   GRETA_EVENT_EMBEDDING,  GRETA_EVENT_START,
    GRETA_EVENT_PROGRESS, GRETA_EVENT_CALL_START, GRETA_EVENT_CALL_PIECE};
static_assert(size_t(Kind::CallPiece) + 1 == std::size(kEventKinds));
static_assert(int(RequestProgress::State::Ended) == GRETA_REQUEST_ENDED);
static_assert(sizeof(greta_top_logprob) == sizeof(Likely) &&
              offsetof(greta_top_logprob, logprob) == offsetof(Likely, logprob));

struct greta_service {
  greta_model* model;
  std::shared_ptr<CountedExecutor> executor;  // outlives the service
  std::unique_ptr<Service> service;
};

struct greta_request {
  std::shared_ptr<Request> request;
  RequestEvent event;  // what greta_request_next gave out last
};

constexpr uint64_t kPageFolderBytes = uint64_t(4) << 30;

static Status read_service_options(const greta_service_options* given, ServiceOptions* out,
                                   greta_executor_options* sizes) {
  greta_service_options o;
  GRETA_TRY(read_options(given, &o));
  GRETA_TRY(check_reserved(o.reserved));
  GRETA_TRY(read_flag(o.own_thread, "own_thread", &out->own_thread));
  bool no_cache = false;
  GRETA_TRY(read_flag(o.no_prefix_cache, "no_prefix_cache", &no_cache));
  out->scheduler.prefix_cache = !no_cache;
  if (o.max_requests) out->scheduler.requests = o.max_requests;
  if (o.max_requests > kMaxRequests)
    return fail(Code::Argument, "max_requests is %u, at most %u", o.max_requests, kMaxRequests);
  if (o.salt_requests > out->scheduler.requests)
    return fail(Code::Argument, "salt_requests is %u, and max_requests %zu", o.salt_requests,
                out->scheduler.requests);
  out->places.all = out->scheduler.requests;
  out->places.of_salt = o.salt_requests ? o.salt_requests : std::max<size_t>(1, out->places.all / 2);
  if (o.unread_ms) out->places.unread_ns = uint64_t(o.unread_ms) * 1'000'000;
  if (o.unread_ms == UINT32_MAX) out->places.unread_ns = UINT64_MAX;
  if (o.event_capacity) out->events = o.event_capacity;
  out->wake = {o.on_ready, o.on_ready_user, nullptr};
  if (o.step_ms) out->scheduler.step_ns = uint64_t(o.step_ms) * 1'000'000;
  out->scheduler.chunk_tokens = o.chunk_tokens;
  out->scheduler.host_cache_bytes = o.host_cache_bytes;
  if (o.page_folder && !*o.page_folder) return fail(Code::Argument, "page_folder is empty, expected a path");
  if (o.page_folder) out->scheduler.folder.folder = o.page_folder;
  out->scheduler.folder.bytes = o.page_folder_bytes ? o.page_folder_bytes : kPageFolderBytes;
  out->scheduler.folder.version = GRETA_VERSION;
  GRETA_TRY(within(read_options(o.executor, sizes), "executor"));
  sizes->struct_size = sizeof *sizes;
  if (sizes->sequences == 0) sizes->sequences = 16;
  return {};
}

greta_status greta_service_open(greta_model* model, const greta_service_options* given,
                                greta_service** out_service) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(model));
    GRETA_TRY(need(out_service, "out_service"));
    ServiceOptions options;
    greta_executor_options sizes;
    GRETA_TRY(read_service_options(given, &options, &sizes));
    auto service = std::make_unique<greta_service>();
    service->model = model;
    GRETA_TRY(open_executor(*model, &sizes, &service->executor));
    std::shared_ptr<Executor> engine(service->executor, service->executor->executor.get());
    GRETA_TRY(Service::open(std::move(engine), options, &service->service));
    *out_service = service.release();
    return {};
  });
}

// A child of fork() leaves all to its parent, whose threads may hold locks.
void greta_service_close(greta_service* service) {
  if (service && !service->model->runtime->process.elsewhere()) close_object(service);
}

greta_status greta_service_run(greta_service* service) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(service, "service"));
    GRETA_TRY(need_device(service->model));
    return service->service->run();
  });
}

void greta_service_stop(greta_service* service) {
  if (service && !service->model->runtime->process.elsewhere()) service->service->stop();
}

greta_status greta_service_describe(greta_service* service, greta_service_info* out_info) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(service, "service"));
    GRETA_TRY(need_device(service->model));
    const ServiceState state = service->service->state();
    greta_service_info info = {};
    info.waiting = state.waiting;
    info.running = state.running;
    info.pages = state.pages;
    info.free_pages = state.free_pages;
    info.cached_pages = state.cached_pages;
    info.steps = state.counts.steps;
    info.rows = state.counts.rows;
    info.cached_tokens = state.counts.cached_tokens;
    info.set_back = state.counts.set_back;
    info.brought_back = state.counts.brought_back;
    info.host_pages = state.kept_pages;
    info.step_ns = state.counts.step_ns;
    info.prompt_tokens = state.counts.prompt_tokens;
    info.generated_tokens = state.counts.generated_tokens;
    info.failed = state.counts.failed;
    std::copy_n(state.counts.ended, kStopReasons, info.ended);
    info.host_ns = state.counts.host_ns;
    info.reread_tokens = state.counts.reread_tokens;
    return write_result(info, out_info);
  });
}

greta_status greta_service_add(greta_service* service, const greta_request_options* given,
                               greta_request** out_request) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(service, "service"));
    GRETA_TRY(need_device(service->model));
    GRETA_TRY(need(given, "options"));
    GRETA_TRY(need(out_request, "out_request"));
    greta_request_options o;
    GRETA_TRY(read_options(given, &o));
    std::unique_ptr<Places::Place> place;
    GRETA_TRY(service->service->take_place(o.salt, &place));
    RequestOptions options;
    GRETA_TRY(read_request_options(*service->model, *service->executor->executor, given, &options));
    auto request = std::make_unique<greta_request>();
    GRETA_TRY(service->service->add(std::move(options), std::move(place), &request->request));
    *out_request = request.release();
    return {};
  });
}

greta_status greta_service_prompt(greta_service* service, const greta_request_options* given,
                                  int (*on_prompt)(void* user, const greta_prompt* prompt), void* user) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(service, "service"));
    GRETA_TRY(need_device(service->model));
    GRETA_TRY(need(given, "options"));
    if (!on_prompt) return fail(Code::Argument, "on_prompt is NULL");
    RequestOptions options;
    GRETA_TRY(read_request_options(*service->model, *service->executor->executor, given, &options));
    greta_prompt prompt = {};
    prompt.struct_size = sizeof prompt;
    prompt.text = options.prompt_text.c_str();
    prompt.bytes = options.prompt_text.size();
    prompt.tokens = options.tokens.data();
    prompt.token_count = options.tokens.size();
    if (prompt.token_count) prompt.cached_tokens = service->service->cached_tokens(options);
    const int stopped = call_back("on_prompt", [&] { return on_prompt(user, &prompt); });
    return stopped ? fail(Code::Cancelled, "on_prompt asked to stop") : Status{};
  });
}

greta_status greta_service_forget(greta_service* service, const int32_t* tokens, size_t token_count,
                                  uint64_t salt, size_t* out_tokens) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(service, "service"));
    GRETA_TRY(need_device(service->model));
    if (token_count) GRETA_TRY(need(tokens, "tokens"));
    uint32_t forgotten = 0;
    GRETA_TRY(service->service->forget(salt, {tokens, token_count}, &forgotten));
    if (out_tokens) *out_tokens = forgotten;
    return {};
  });
}

greta_status greta_request_next(greta_request* request, uint64_t timeout_ns, greta_request_event* out_event) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(request, "request"));
    GRETA_TRY(request->request->process().check());
    GRETA_TRY(check_result(out_event));
    greta_request_event event = {};
    RequestEvent& from = request->event;
    from = {};
    event.token = kNoToken;
    event.text = "";
    if (request->request->next(timeout_ns, &from, &event.unread)) {
      event.kind = kEventKinds[size_t(from.kind)];
      event.token = from.token.token;
      event.logprob = from.token.logprob;
      event.text = from.text.c_str();
      event.bytes = from.text.size();
      if (from.kind == Kind::ToolCall || from.kind == Kind::CallStart) {
        event.id = from.call.id.c_str();
        event.name = from.call.name.c_str();
        event.arguments = from.call.arguments.c_str();
      }
      event.top = reinterpret_cast<const greta_top_logprob*>(from.top.data());
      event.top_count = from.top.size();
      event.embedding = from.embedding.empty() ? nullptr : from.embedding.data();
      event.embedding_count = from.embedding.size();
      event.prompt_tokens = from.progress.prompt_tokens;
      event.read_tokens = std::min(from.progress.read_tokens, from.progress.prompt_tokens);
      event.cached_tokens = from.progress.cached_tokens;
    } else {
      RequestResult result;
      event.kind = request->request->ended(&result) ? GRETA_EVENT_END : GRETA_EVENT_NONE;
    }
    return write_result(event, out_event);
  });
}

greta_status greta_request_describe(greta_request* request, greta_request_info* out_info) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(request, "request"));
    GRETA_TRY(request->request->process().check());
    greta_request_info info = {};
    const RequestProgress from = request->request->progress(&info.unread_events);
    info.state = greta_request_state(from.state);
    if (info.state == GRETA_REQUEST_WAITING) info.before = request->request->line_place();
    info.prompt_tokens = from.prompt_tokens;
    info.read_tokens = from.read_tokens;
    info.cached_tokens = from.cached_tokens;
    info.generated_tokens = from.generated_tokens;
    info.reasoning_tokens = from.reasoning_tokens;
    info.set_back = from.set_back;
    return write_result(info, out_info);
  });
}

void greta_request_cancel(greta_request* request) {
  if (request && !request->request->process().elsewhere()) request->request->cancel();
}

greta_status greta_request_finish(greta_request* request, greta_request_result* out_result) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(request, "request"));
    GRETA_TRY(request->request->process().check());
    if (out_result) GRETA_TRY(check_result(out_result));
    RequestResult from;
    if (!request->request->ended(&from))
      return fail(Code::Argument, "the request has not ended, or not all its events were read");
    greta_request_result result = {};
    result.reason = greta_stop_reason(from.reason);
    result.stop_string = from.stop_string;
    result.prompt_tokens = from.prompt_tokens;
    result.cached_tokens = from.cached_tokens;
    result.generated_tokens = from.generated_tokens;
    result.set_back = from.set_back;
    result.tool_calls = from.tool_calls;
    result.open_reasoning = from.open_reasoning;
    result.queued_ns = from.queued_ns;
    result.prompt_ns = from.prompt_ns;
    result.generate_ns = from.generate_ns;
    result.forgotten_tokens = from.forgotten_tokens;
    result.drafted_tokens = from.drafted_tokens;
    result.accepted_tokens = from.accepted_tokens;
    result.reasoning_tokens = from.reasoning_tokens;
    result.draw_steps = from.draw_steps;
    result.draft_stopped = from.draft_stopped;
    result.reread_tokens = from.reread_tokens;
    if (out_result) GRETA_TRY(write_result(result, out_result));
    return from.status.ok() ? from.status : fail(from.status.code, "%s", from.error);
  });
}

greta_status greta_request_tokens(const greta_request* request, const int32_t** out_tokens,
                                  size_t* out_count) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(request, "request"));
    GRETA_TRY(need(out_tokens, "out_tokens"));
    GRETA_TRY(need(out_count, "out_count"));
    GRETA_TRY(request->request->process().check());
    RequestResult result;
    if (!request->request->ended(&result))
      return fail(Code::Argument, "the request has not ended, or not all its events were read");
    const std::span<const int32_t> tokens = request->request->written();
    *out_tokens = tokens.data();
    *out_count = tokens.size();
    return {};
  });
}

// Gives the state of a request that has ended, unless it has none.
static Status state_of(const greta_request* request, const SavedState** out) {
  GRETA_TRY(need(request, "request"));
  GRETA_TRY(request->request->process().check());
  RequestResult result;
  if (!request->request->ended(&result))
    return fail(Code::Argument, "the request has not ended, or not all its events were read");
  if (!request->request->options().keep_state)
    return fail(Code::Argument, "the request has kept no state: ask for it with keep_state");
  if (!result.status.ok()) return fail(Code::Argument, "the request failed, and has no state");
  GRETA_TRY(request->request->state_status());
  *out = &request->request->state();
  return {};
}

uint64_t greta_request_state_bytes(const greta_request* request) {
  const SavedState* state = nullptr;
  return state_of(request, &state).ok() ? state->header.total_bytes : 0;
}

greta_status greta_request_save(greta_request* request, greta_write_callback write, void* user) {
  return fenced([&]() -> Status {
    const SavedState* state = nullptr;
    GRETA_TRY(state_of(request, &state));
    if (!write) return fail(Code::Argument, "write is NULL");
    CWriter writer{write, user};
    return write_state(*state, CWriter::write, &writer);
  });
}

void greta_request_close(greta_request* request) {
  if (!request || request->request->process().elsewhere()) return;
  request->request->silence();
  request->request->cancel();
  close_object(request);
}
