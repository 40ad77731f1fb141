// Any bytes as the body of a call of greta-cli serve. What must hold: no crash; every call is answered or
// refused, with JSON and a status; and nothing of a call stays behind.
//
// Input: a letter for the path ('a' is the first of kPaths), then the body. What is started is cancelled
// soon.
#include <chrono>
#include <cstdint>
#include <thread>

#include "places.h"
#include "server.h"

using namespace greta;
using namespace greta::serve;

namespace {

constexpr const char* kPaths[] = {
    "/v1/chat/completions",
    "/v1/completions",
    "/completion",
    "/infill",
    "/v1/embeddings",
    "/tokenize",
    "/detokenize",
    "/v1/messages",
    "/apply-template",
    "/v1/messages/count_tokens",
    "/v1/responses",
    "/api/chat",
    "/api/generate",
    "/api/show",
    "/chat/completions/input_tokens",
    "/models/load",
    "/slots/0",
};
constexpr std::chrono::milliseconds kPatience{2};  // before what runs is cancelled

void must(bool holds) {
  if (!holds) __builtin_trap();
}

// Checks what comes, and counts whole answers.
class Answer : public Reply {
 public:
  void always(Headers) override {}
  void send(Response response) override {
    must(response.status >= 200 && response.status < 600);
    if (response.type.starts_with("application/json")) must(Json::accept(response.body));
    ++ends;
  }
  void begin(Response head) override { must(head.status == 200); }
  void write(std::string bytes) override { must(is_utf8(bytes)); }
  void end() override { ++ends; }
  bool full() const override { return false; }
  void watch(std::shared_ptr<Watcher>) override {}
  void hold(std::shared_ptr<void>) override {}
  std::atomic<int> ends{0};
};

struct Rig {
  Options options;
  greta_runtime* runtime = nullptr;
  std::unique_ptr<Server> server;
  Rig() {
    options.port = 0;
    options.parallel = 2;
    options.slot_folder = ".";  // nothing is written, since slots are erased alone
    auto open = sized<greta_runtime_options>();
    open.device = "cpu";
    open.threads = 1;
    must(greta_runtime_open(&open, &runtime) == GRETA_OK);
    server = std::make_unique<Server>(options);
    server->models().start(
        [this] {
          Loaded loaded;
          loaded.runtime = runtime;
          loaded.path = GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf";
          loaded.engine.executor = sized<greta_executor_options>();
          loaded.engine.executor.context = 256;
          return loaded;
        },
        [] {});
  }
  ~Rig() {
    server.reset();
    greta_runtime_close(runtime);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Rig rig;
  if (size == 0) return 0;
  std::string methods;
  const Route* route = find_route(
      "POST", kPaths[(data[0] + std::size(kPaths) - 'a' % std::size(kPaths)) % std::size(kPaths)], &methods);
  must(route != nullptr);
  Hosted* hosted = rig.server->models().find("");
  const auto reply = std::make_shared<Answer>();
  Call call;
  call.method = "POST";
  call.path = route->path;
  call.query = "action=erase";
  call.body.assign(reinterpret_cast<const char*>(data + 1), size - 1);
  Context context{*rig.server, std::move(call), reply, "req_1", {}, hosted, false, {}};
  try {
    route->run(context);
  } catch (const Refused& refused) {
    reply->send(error_response(route->form, refused));
  }
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (bool cancelled = false; hosted->jobs->active() > 0 || reply->ends == 0;) {
    if (!cancelled && std::chrono::steady_clock::now() > until) {
      hosted->jobs->cancel_all();
      cancelled = true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  must(reply->ends == 1);
  return 0;
}
