#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include "endpoints.h"

namespace greta::serve {
namespace {

constexpr size_t kMostWork = 1024;  // calls that wait for a thread of the pool

// Takes as long for any two keys of the same length as the given one.
bool same_key(std::string_view given, std::string_view key) {
  if (key.empty()) return false;
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(key[i % key.size()]);
  return difference == 0;
}

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
  if (const Model* model = server.model()) return *model;
  Refused refused(503, "Loading model");
  refused.more = server.loading();
  refused.retry_s = 1;
  throw refused;
}

void Context::send(const Json& json, Headers headers) const {
  Response response;
  response.body = dump(json);
  response.headers = std::move(headers);
  reply->send(std::move(response));
}

void Context::start(std::unique_ptr<Sink> sink, std::vector<JobItem> items) const {
  server.jobs().start(id, reply, std::move(sink), std::move(items));
}

// ---- the server ----

Server::Server(const Options& options)
    : options_(options),
      jobs_([this](const Ended& ended) { metrics_.ended(ended), log_end(ended); },
            [this](uint64_t ns) { metrics_.gap(ns); }),
      pool_(2) {
  ListenOptions listen;
  listen.host = options_.host;
  listen.port = options_.port;
  listen.ping_s = options_.ping_s;
  listen.timeout_s = options_.timeout_s;
  listener_ = std::make_unique<Listener>(listen, this);
}

Server::~Server() {
  jobs_.close();
  greta_service_close(model_.service);
  greta_model_close(model_.model);
}

void Server::log(const std::string& line) const {
  if (options_.say) options_.say(line);
}

// Counts and times, and nothing of what was asked or answered.
void Server::log_end(const Ended& ended) const {
  if (!options_.log) return;
  constexpr const char* kReasons[] = {"length", "end", "context", "cancelled", "stop", "unread"};
  const greta_request_result& result = ended.result;
  const auto reason = static_cast<size_t>(result.reason);
  const auto ms = [](uint64_t ns) { return static_cast<double>(ns / 1000) / 1e3; };
  const bool failed = ended.status != GRETA_OK;
  options_.log(dump({{"time", now_s()},
                     {"id", ended.id},
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
                     {"whole_ms", ms(ended.whole_ns)}}));
}

Json Server::loading() const {
  const uint64_t total = total_;
  const double part = total > 0 ? static_cast<double>(done_) / static_cast<double>(total) : 0;
  return {{"stage", stage_.load()}, {"progress", part}};
}

int Server::run(const Loader& load) {
  std::thread network([this] { listener_->run(); });
  const std::string where = listener_->port() == 0
                                ? options_.host
                                : "http://" + options_.host + ":" + std::to_string(listener_->port());
  log("listening on " + where);
  if (options_.keys.empty() && !listener_->loopback())
    log("anybody who reaches this address may use the model: --api-key keeps others out");
  std::string failure;
  try {
    this->load(load);
    log("ready: " + model_.name + ", " + std::to_string(options_.parallel) +
        " requests at once, contexts of " + std::to_string(model_.context) + " tokens, a cache of " +
        std::to_string(model_.cache_tokens));
  } catch (const std::exception& error) {
    failure = error.what();
    listener_->stop();
  }
  network.join();
  pool_.close();
  jobs_.close();
  if (!failure.empty() && !stopping_) throw std::runtime_error(failure);
  return exit_code_;
}

void Server::load(const Loader& load) {
  const Loaded loaded = load();
  auto source = sized<greta_source>();
  source.path = loaded.path.c_str();
  source.map = loaded.map ? 1 : 0;
  auto open = sized<greta_model_options>();
  open.source = &source;
  open.progress_user = this;
  open.progress = [](void* user, uint64_t done, uint64_t total) {
    auto* self = static_cast<Server*>(user);
    self->done_ = done, self->total_ = total;
    return self->stopping_ ? 1 : 0;
  };
  stage_ = "loading weights";
  if (greta_model_open(loaded.runtime, &open, &model_.model)) throw std::runtime_error(greta_error_text());
  model_.info = sized<greta_model_info>();
  greta_model_describe(model_.model, &model_.info);
  model_.tokenizer = greta_model_tokenizer(model_.model);
  model_.path = loaded.path;
  const std::string file = loaded.path.substr(loaded.path.rfind('/') + 1);
  model_.name = options_.alias.empty() ? file.substr(0, file.rfind(".gguf")) : options_.alias;
  model_.created_s =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  model_.defaults = default_ask(options_, model_.model, model_.tokenizer);
  stage_ = "compiling kernels";
  done_ = 0;
  open_service(loaded);
  jobs_.open(model_.service, options_.parallel);
  ready_ = true;
}

// The cache has room for all requests at their full length, or for as much of it as fits into memory.
void Server::open_service(const Loaded& loaded) {
  greta_executor_options executor = loaded.executor;
  executor.sequences = options_.parallel;
  if (loaded.whole_context) executor.context = model_.info.context;
  executor.compile_ahead = 1;
  executor.progress_user = this;
  executor.progress = [](void* user, uint64_t done, uint64_t total) {
    auto* self = static_cast<Server*>(user);
    if (!self->ready_) self->done_ = done, self->total_ = total;
    return self->stopping_ ? 1 : 0;
  };
  auto open = sized<greta_service_options>();
  open.own_thread = 1;
  open.executor = &executor;
  open.max_requests = options_.queue > 0 ? options_.queue : options_.parallel * 5;
  open.salt_requests = open.max_requests;
  open.host_cache_bytes = options_.host_cache_bytes;
  if (!options_.page_folder.empty()) open.page_folder = options_.page_folder.c_str();
  jobs_.listen(&open);
  const uint32_t context = executor.context > 0 ? executor.context : std::min(8192U, model_.info.context);
  const bool chosen = executor.cache_tokens > 0;
  uint64_t cache = chosen ? executor.cache_tokens : uint64_t{context} * options_.parallel;
  for (;; cache /= 2) {
    executor.context = context;
    executor.cache_tokens = static_cast<uint32_t>(std::min<uint64_t>(cache, INT32_MAX));
    const greta_status status = greta_service_open(model_.model, &open, &model_.service);
    if (status == GRETA_OK) break;
    const bool smaller = !chosen && status == GRETA_ERROR_MEMORY && cache / 2 >= context && !stopping_;
    if (!smaller) throw std::runtime_error(greta_error_text());
  }
  model_.context = context;
  model_.cache_tokens = executor.cache_tokens;
}

bool Server::has_key(const Call& call) const {
  if (options_.keys.empty()) return true;
  const std::string& bearer = call.header("authorization");
  std::string_view given = call.header("x-api-key");
  if (bearer.size() > 7 && (bearer.starts_with("Bearer ") || bearer.starts_with("bearer ")))
    given = std::string_view(bearer).substr(7);
  bool known = false;
  for (const std::string& key : options_.keys) known = same_key(given, key) || known;
  return known;
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
  if (!(route->flags & kOpen) && !has_key(head))
    return refuse(401, "the API key is missing or wrong", "authentication_error");
  if (stopping_ && !(route->flags & kQuick))
    return refuse(503, "the server is stopping", "unavailable_error");
  return false;
}

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
  const auto work = [this, route, call = std::move(call), reply, id = std::move(id)]() mutable {
    Context context{*this, std::move(call), reply, std::move(id)};
    Refused refused(500, "");
    try {
      if (!(route->flags & kWithoutModel)) context.model();
      return route->run(context);
    } catch (const Refused& error) {
      refused = error;
    } catch (const std::bad_alloc&) {
      refused = Refused(503, "memory ran out");
    } catch (const std::exception& error) {
      refused = Refused(500, error.what());
    }
    reply->send(error_response(route->form, refused));
  };
  if (route->flags & kQuick) return const_cast<std::remove_const_t<decltype(work)>&>(work)();
  if (!pool_.submit(work)) {
    Refused refused(429, "too many requests wait");
    refused.retry_s = 1;
    reply->send(error_response(route->form, refused));
  }
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
  stop_at_ = std::chrono::steady_clock::now() + std::chrono::seconds(options_.drain_s);
  stop_if_done();
}

void Server::stop_if_done() {
  const auto now = std::chrono::steady_clock::now();
  if (listener_->busy() == 0 || now > stop_at_ + std::chrono::seconds(3)) return listener_->stop();
  if (now < stop_at_ || cancelled_) return;
  cancelled_ = true;
  jobs_.cancel_all();
}

int serve(const Options& options, const Loader& load) {
  Server server(options);
  return server.run(load);
}

}  // namespace greta::serve
