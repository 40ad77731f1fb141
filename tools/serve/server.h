// The server: which calls there are, who may make them, and what stands behind them. docs/server.md is for
// its users.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ask.h"
#include "http.h"
#include "jobs.h"
#include "keys.h"
#include "metrics.h"
#include "models.h"
#include "serve.h"
#include "spans.h"

namespace greta::serve {

// The forms in which APIs write errors.
enum class Form : uint8_t { OpenAi, Anthropic, Ollama };

// A few threads for JSON, templates and texts, so that the network waits for none of them.
class Pool {
 public:
  explicit Pool(uint32_t threads);
  ~Pool() { close(); }
  bool submit(std::function<void()> work);  // false: too much waits
  void close();

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<std::function<void()>> waiting_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

class Server;

// One call under way.
struct Context {
  Server& server;
  Call call;
  std::shared_ptr<Reply> reply;
  std::string id;  // that of X-Request-Id
  Trace trace;
  Hosted* hosted = nullptr;    // the model that was chosen, which is held until the call was handled
  bool asleep = false;         // the model sleeps, and is not held
  std::optional<Json> parsed;  // its body, where that was read already
  const Json& body();          // Throws Refused if it is no JSON object.
  const Model& model() const;
  void send(const Json& json, Headers headers = {}) const;
  // Takes the asks to the service. Each gets events under its number.
  void start(std::unique_ptr<Sink> sink, std::vector<JobItem> items) const;
};

struct Route {
  const char *method, *path;  // without /v1, which may stand before it
  Form form;
  uint8_t flags;
  void (*run)(Context& context);
};
inline constexpr uint8_t kOpen = 1;          // needs no key
inline constexpr uint8_t kQuick = 2;         // runs on the network's thread
inline constexpr uint8_t kWithoutModel = 4;  // works while the model loads
inline constexpr uint8_t kAsleep = 16;       // does not wake a model that sleeps
inline constexpr uint8_t kSlow = 8;          // waits for files and for the service, on a thread of its own

class Server : public Handler {
 public:
  explicit Server(const Options& options);
  ~Server() override;
  int run(const Loader& load);

  // ---- Handler ----
  bool refuses(const Call& head, Response* refusal) override;
  void handle(Call call, std::shared_ptr<Reply> reply) override;
  Response malformed(int status, const std::string& words, const std::string& path) override;
  void second() override;
  void asked_to_stop(int signal) override;

  const Options& options() const { return options_; }
  Models& models() { return models_; }
  bool stopping() const { return stopping_; }
  bool started() const { return started_; }
  Refused not_loaded(Hosted* hosted);  // why a model cannot be used now
  void log(const std::string& line) const;
  void note_end(Hosted& hosted, const Ended& ended) const;
  void log_end(const Hosted& hosted, const Ended& ended) const;

 private:
  struct Task;
  Hosted* choose(Task& task);
  void run_route(Task& task, Hosted* hosted, bool asleep);
  static void refuse_busy(const Task& task, const char* words);
  void run(const std::shared_ptr<Task>& task);
  void run_or_load(const std::shared_ptr<Task>& task);
  void submit(const std::shared_ptr<Task>& task);
  int key_of(const Call& call) const;  // -1: it has none
  bool knows_host(const Call& call) const;
  bool allows_origin(const Call& call, std::string* allowed) const;
  void add_cors(const Call& call, Response* response) const;
  void stop_if_done();

  Options options_;
  Keys keys_;
  std::unique_ptr<Spans> spans_;  // none: nobody collects them
  Models models_;
  Pool pool_, slow_;
  std::unique_ptr<Listener> listener_;
  std::atomic<bool> started_{false}, stopping_{false};
  std::chrono::steady_clock::time_point stop_at_;
  bool cancelled_ = false;
  int exit_code_ = 0;
};

// ---- routes.cpp ----
const Route* find_route(const std::string& method, const std::string& path, std::string* allowed_methods);
Form form_of(const std::string& path);
Response error_response(Form form, const Refused& refused);
Json error_json(Form form, const Refused& refused);
// The value of `name` in a query, or "".
std::string in_query(const std::string& query, const std::string& name);

}  // namespace greta::serve
