#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "endpoints.h"

namespace greta::serve {
namespace {

constexpr int kMostWaits = 3;       // Another model may take its place before a call runs.
constexpr size_t kMostWork = 1024;  // calls that wait for a thread of the pool

// "localhost:8080" -> "localhost", "[::1]:8080" -> "[::1]"
std::string without_port(const std::string& host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

std::string host_of_origin(const std::string& origin) {
  const size_t slashes = origin.find("://");
  return slashes == origin.npos ? "" : origin.substr(slashes + 3);
}

}  // namespace

// ---- the pool ----

Pool::Pool(uint32_t threads) {
  for (uint32_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

bool Pool::submit(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (closing_ || waiting_.size() >= kMostWork) return false;
    waiting_.push_back(std::move(work));
  }
  woken_.notify_one();
  return true;
}

void Pool::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  woken_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void Pool::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

// ---- contexts ----

const Model& Context::model() const {
  if (!hosted) throw server.not_loaded(server.models().find(""));
  return hosted->model;
}

const Json& Context::body() {
  if (!parsed) parsed = parse_object(call.body);
  return *parsed;
}

void Context::send(const Json& json, Headers headers) const {
  Response response;
  response.body = dump(json);
  response.headers = std::move(headers);
  reply->send(std::move(response));
}

void Context::start(std::unique_ptr<Sink> sink, std::vector<JobItem> items) const {
  for (const JobItem& item : items)
    if (item.ask->slot >= hosted->options->parallel)
      throw Refused(400, "id_slot must be -1, or at most " + std::to_string(hosted->options->parallel - 1),
                    "id_slot");
  hosted->jobs->start(id, trace, reply, std::move(sink), std::move(items));
}

// ---- the server ----

Server::Server(const Options& options)
    : options_(options),
      keys_(options.keys),
      models_(options_, [this](Hosted& hosted, const Ended& ended) { note_end(hosted, ended); }),
      pool_(2),
      slow_(1) {
  if (!options_.collector.empty()) spans_ = std::make_unique<Spans>(options_.collector, options_.say);
  ListenOptions listen;
  listen.host = options_.host;
  listen.port = options_.port;
  listen.sockets = options_.sockets;
  listen.tls_key = options_.tls_key;
  listen.tls_certificate = options_.tls_certificate;
  listen.ping_s = options_.ping_s;
  listen.timeout_s = options_.timeout_s;
  listener_ = std::make_unique<Listener>(listen, this);
}

Server::~Server() { models_.close(); }

void Server::log(const std::string& line) const {
  if (options_.say) options_.say(line);
}

void Server::note_end(Hosted& hosted, const Ended& ended) const {
  hosted.metrics.ended(ended);
  log_end(hosted, ended);
  if (spans_) spans_->add(hosted.name, ended);
}

// Counts and times, and nothing of what was asked or answered.
void Server::log_end(const Hosted& hosted, const Ended& ended) const {
  if (!options_.log) return;
  constexpr const char* kReasons[] = {"length", "end", "context", "cancelled", "stop", "unread"};
  const greta_request_result& result = ended.result;
  const auto reason = static_cast<size_t>(result.reason);
  const auto ms = [](uint64_t ns) { return static_cast<double>(ns / 1000) / 1e3; };
  const bool failed = ended.status != GRETA_OK;
  Json line = {{"time", now_s()},
               {"id", ended.id},
               {"model", hosted.name},
               {"end", failed                         ? "failed"
                       : reason < std::size(kReasons) ? kReasons[reason]
                                                      : "other"},
               {"prompt_tokens", result.prompt_tokens},
               {"cached_tokens", result.cached_tokens},
               {"generated_tokens", result.generated_tokens},
               {"queued_ms", ms(result.queued_ns)},
               {"prompt_ms", ms(result.prompt_ns)},
               {"generate_ms", ms(result.generate_ns)},
               {"first_token_ms", ms(ended.first_token_ns)},
               {"whole_ms", ms(ended.whole_ns)}};
  if (ended.differs_at > 0) line["differs_at"] = ended.differs_at;
  if (!ended.trace.trace.empty()) {
    line["trace_id"] = ended.trace.trace;
    line["parent_id"] = ended.trace.parent;
  }
  options_.log(dump(line));
}

Refused Server::not_loaded(Hosted* hosted) {
  using State = Hosted::State;
  const State state = hosted ? hosted->state.load() : State::Unloaded;
  if (state == State::Failed) return {500, "the model cannot be loaded: " + models_.failure_of(hosted)};
  if (state != State::Loading && started_) return {503, "the model is not loaded"};
  Refused refused(503, "Loading model");
  const uint64_t total = hosted->total;
  const double part = total > 0 ? static_cast<double>(hosted->done) / static_cast<double>(total) : 0;
  refused.more = {{"stage", hosted->stage.load()}, {"progress", part}};
  refused.retry_s = 1;
  return refused;
}

int Server::run(const Loader& load) {
  std::thread network([this] { listener_->run(); });
  const std::string where = !options_.sockets.empty() ? "sockets that were passed on"
                            : listener_->port() == 0
                                ? options_.host
                                : (options_.tls_key.empty() ? "http://" : "https://") + options_.host + ":" +
                                      std::to_string(listener_->port());
  log("listening on " + where);
  if (options_.keys.empty() && !listener_->loopback())
    log("anybody who reaches this address may use the model: --api-key keeps others out");
  std::string failure;
  try {
    models_.start(load, [this] {
      started_ = true;
      const Model& only = models_.all()[0]->model;
      log(models_.many() ? "ready: " + std::to_string(models_.all().size()) + " models"
                         : "ready: " + only.name + ", " + std::to_string(options_.parallel) +
                               " requests at once, contexts of " + std::to_string(only.context) +
                               " tokens, a cache of " + std::to_string(only.cache_tokens));
    });
  } catch (const std::exception& error) {
    failure = error.what();
    listener_->stop();
  }
  network.join();
  pool_.close();
  slow_.close();
  models_.close();
  if (!failure.empty() && !stopping_) throw std::runtime_error(failure);
  return exit_code_;
}

int Server::key_of(const Call& call) const {
  const std::string& bearer = call.header("authorization");
  std::string_view given = call.header("x-api-key");
  if (bearer.size() > 7 && (bearer.starts_with("Bearer ") || bearer.starts_with("bearer ")))
    given = std::string_view(bearer).substr(7);
  return keys_.find(given);
}

// A page whose name was made to mean this machine must not reach what only this machine may.
bool Server::knows_host(const Call& call) const {
  if (call.local || !listener_->loopback()) return true;
  const std::string host = without_port(call.header("host"));
  if (host.empty()) return true;  // no browser leaves it out
  for (const char* name : {"localhost", "127.0.0.1", "[::1]"})
    if (host == name) return true;
  return host == options_.host || host == "[" + options_.host + "]" || host.starts_with("127.");
}

bool Server::allows_origin(const Call& call, std::string* allowed) const {
  const std::string& origin = call.header("origin");
  if (origin.empty()) return true;
  for (const std::string& each : options_.cors_origins) {
    if (each != "*" && each != origin) continue;
    *allowed = each == "*" ? "*" : origin;
    return true;
  }
  return host_of_origin(origin) == call.header("host");
}

void Server::add_cors(const Call& call, Response* response) const {
  std::string allowed;
  if (!allows_origin(call, &allowed) || allowed.empty()) return;
  response->headers.emplace_back("Access-Control-Allow-Origin", allowed);
  if (allowed != "*") response->headers.emplace_back("Vary", "Origin");
}

bool Server::refuses(const Call& head, Response* refusal) {
  const Form form = form_of(head.path);
  const auto refuse = [&](int status, const std::string& words, const std::string& type) {
    Refused refused(status, words);
    refused.type = type;
    *refusal = error_response(form, refused);
    add_cors(head, refusal);
    return true;
  };
  if (!knows_host(head))
    return refuse(403, "the Host of the request is none of this machine", "permission_error");
  std::string allowed_origin, methods;
  if (!allows_origin(head, &allowed_origin))
    return refuse(403, "pages of this origin may not use the server (--cors-origins names those that may)",
                  "permission_error");
  const Route* route = find_route(head.method, head.path, &methods);
  if (!route && methods.empty()) return refuse(404, "there is nothing at " + head.path, "not_found_error");
  if (head.method == "OPTIONS") {
    *refusal = Response{204, "", "", {{"Allow", methods}}};
    add_cors(head, refusal);
    if (allowed_origin.empty()) return true;
    refusal->headers.emplace_back("Access-Control-Allow-Methods", methods);
    refusal->headers.emplace_back("Access-Control-Allow-Headers", "*, Authorization");
    return true;
  }
  if (!route) {
    refuse(405, head.path + " takes " + methods + ", not " + head.method, "invalid_request_error");
    refusal->headers.emplace_back("Allow", methods);
    return true;
  }
  if (!(route->flags & kOpen) && !keys_.empty() && key_of(head) < 0)
    return refuse(401, "the API key is missing or wrong", "authentication_error");
  if (stopping_ && !(route->flags & kQuick))
    return refuse(503, "the server is stopping", "unavailable_error");
  return false;
}

// A call from its last byte to its answer.
struct Server::Task {
  const Route* route;
  Call call;
  std::shared_ptr<Reply> reply;
  std::string id;
  Hosted* hosted = nullptr;
  std::optional<Json> body;  // where it was read already
  int waits = 0;             // how often it has waited for its model
};

void Server::handle(Call call, std::shared_ptr<Reply> reply) {
  std::string methods;
  const Route* route = find_route(call.method, call.path, &methods);
  if (!route) return;  // refuses() has answered
  Response common;
  add_cors(call, &common);
  std::string id = call.header("x-request-id");
  if (id.empty() || id.size() > 128 || !is_utf8(id)) id = random_id("req_");
  common.headers.emplace_back("X-Request-Id", id);
  reply->always(std::move(common.headers));
  const int key = keys_.empty() ? -1 : key_of(call);
  const auto task = std::make_shared<Task>();
  task->route = route;
  task->call = std::move(call);
  task->reply = std::move(reply);
  task->id = std::move(id);
  if (route->flags & kQuick) return run(task);
  if (!keys_.limits(key)) return submit(task);
  const auto enter = [this, task](std::shared_ptr<Keys::Ticket> ticket) {
    task->reply->hold(std::move(ticket));
    submit(task);
  };
  if (!keys_.enter(key, enter)) refuse_busy(*task, "this key has too many requests under way");
}

void Server::refuse_busy(const Task& task, const char* words) {
  Refused refused(429, words);
  refused.retry_s = 1;
  task.reply->send(error_response(task.route->form, refused));
}

void Server::submit(const std::shared_ptr<Task>& task) {
  Pool& pool = task->route->flags & kSlow ? slow_ : pool_;
  if (pool.submit([this, task] { run(task); })) return;
  refuse_busy(*task, "too many requests wait");
}

std::string in_query(const std::string& query, const std::string& name) {
  for (size_t at = 0; at < query.size();) {
    const size_t end = std::min(query.find('&', at), query.size());
    const std::string part = query.substr(at, end - at);
    if (part.starts_with(name + "=")) return part.substr(name.size() + 1);
    at = end + 1;
  }
  return "";
}

// The model that a call names, in its body or behind "?model=".
Hosted* Server::choose(Task& task) {
  if (!models_.many()) return models_.find("");
  std::string name = in_query(task.call.query, "model");
  if (!task.call.body.empty()) {
    task.body = parse_object(task.call.body);
    if (const std::string* given = Fields(*task.body).text("model")) name = *given;
  }
  Hosted* hosted = models_.find(name);
  if (hosted) return hosted;
  if (name.empty()) throw Refused(400, "model is missing: there are several", "model");
  throw Refused(404, "there is no model " + json_string(name) + " (/models lists those that there are)",
                "model");
}

void Server::run_route(Task& task, Hosted* hosted, bool asleep) {
  Trace trace = trace_of(task.call.header("traceparent"));
  Context context{*this,  std::move(task.call), task.reply, std::move(task.id), std::move(trace), hosted,
                  asleep, std::move(task.body)};
  task.route->run(context);
}

// Handles a call that needs a model, when it is loaded.
void Server::run_or_load(const std::shared_ptr<Task>& task) {
  if (!task->hosted) task->hosted = choose(*task);
  Hosted* hosted = task->hosted;
  if (!models_.hold(hosted, !(task->route->flags & kQuick))) {
    const Hosted::State state = hosted->state;
    if (state == Hosted::State::Sleeping && task->route->flags & kAsleep)
      return run_route(*task, hosted, true);
    const bool failed = task->waits > 0 && state == Hosted::State::Failed;
    const bool may = started_ && !stopping_ && !(task->route->flags & kQuick) && task->waits < kMostWaits &&
                     (!models_.many() || options_.autoload || state == Hosted::State::Loading ||
                      state == Hosted::State::Sleeping);
    if (failed || !may) throw not_loaded(hosted);
    ++task->waits;
    return models_.when_loaded(hosted, [this, task] { submit(task); });
  }
  struct Release {
    Models& models;
    Hosted* hosted;
    ~Release() { models.release(hosted); }
  } release{models_, hosted};
  run_route(*task, hosted, false);
}

void Server::run(const std::shared_ptr<Task>& task) {
  Refused refused(500, "");
  try {
    if (!(task->route->flags & kWithoutModel)) return run_or_load(task);
    return run_route(*task, nullptr, false);
  } catch (const Refused& error) {
    refused = error;
  } catch (const std::bad_alloc&) {
    refused = Refused(503, "memory ran out");
  } catch (const std::exception& error) {
    refused = Refused(500, error.what());
  }
  task->reply->send(error_response(task->route->form, refused));
}

Response Server::malformed(int status, const std::string& words, const std::string& path) {
  return error_response(form_of(path), Refused(status, words));
}

void Server::second() {
  if (stopping_) stop_if_done();
}

void Server::asked_to_stop(int) {
  if (stopping_) {  // the second time: at once
    exit_code_ = 130;
    listener_->stop();
    return;
  }
  log("stopping: answers under way have " + std::to_string(options_.drain_s) + " seconds to end");
  stopping_ = true;
  models_.stop_loading();
  stop_at_ = std::chrono::steady_clock::now() + std::chrono::seconds(options_.drain_s);
  stop_if_done();
}

void Server::stop_if_done() {
  const auto now = std::chrono::steady_clock::now();
  if (listener_->busy() == 0 || now > stop_at_ + std::chrono::seconds(3)) return listener_->stop();
  if (now < stop_at_ || cancelled_) return;
  cancelled_ = true;
  models_.cancel_all();
}

int serve(const Options& options, const Loader& load) {
  Server server(options);
  return server.run(load);
}

}  // namespace greta::serve
