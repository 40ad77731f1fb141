// Models with windows or with states, and sessions of one executor whose cache has groups.
#pragma once
#include "engine/serve_rig.h"
#include "support/model_file.h"

namespace greta::test {

// Without a key the model is as the golden.
inline std::string windowed(const char* golden, const char* key, uint32_t window) {
  ModelFile file = read_model(golden);
  if (key) file.set_u32(key, window);
  return write_model(file);
}

struct Windowed {
  const char* golden;
  const char* key;
  uint32_t window;
};
constexpr Windowed kWindowedModels[] = {{"gemma3-pattern3", "gemma3.attention.sliding_window", 100},
                                        {"gpt-oss-f32", "gpt-oss.attention.sliding_window", 65}};
// Models whose layers keep states: of a convolution, of the gated delta rule as well, and where no layer
// attends.
constexpr Windowed kHybridModels[] = {
    {"lfm2-converted", nullptr, 0}, {"qwen35-converted", nullptr, 0}, {"mamba2-converted", nullptr, 0}};

// Sessions of one executor with windows that give pages back.
struct Sessions {
  Engine engine;
  std::shared_ptr<Executor> executor;

  // `file` is a model's bytes, which outlive this. A large `checkpoint_bytes` keeps all layers in one group,
  // whose pages stay.
  Sessions(const std::string& file, uint32_t sequences, uint32_t cache_tokens, uint64_t checkpoint_bytes = 0,
           uint32_t context = 1024) {
    EngineOptions options;
    options.threads = 1;
    options.executor.context = context;
    options.executor.sequences = sequences;
    options.executor.cache_tokens = cache_tokens;
    options.executor.step_tokens = 64;
    options.executor.checkpoint_bytes = checkpoint_bytes;
    open_engine(file, options, &engine);
    executor = std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {});
  }
  Sessions(std::string&&, uint32_t, uint32_t, uint64_t = 0, uint32_t = 0) = delete;
  std::unique_ptr<Session> open() {
    std::unique_ptr<Session> session;
    REQUIRE(Session::open(executor, &session).ok());
    return session;
  }
  uint32_t vocab() const { return engine.model->shape.vocab; }
};
constexpr uint64_t kOneGroup = uint64_t(1) << 40;

inline std::vector<float> logits_of(Session& session, std::span<const int32_t> tokens, Status* status) {
  const float* logits = nullptr;
  *status = session.eval(tokens, OutputRows::Last, &logits);
  if (!status->ok()) return {};
  return {logits, logits + session.executor().model().shape.vocab};
}

// A session that never lost a page, brought to each text. One with states reads each from its beginning.
struct Reference {
  Sessions sessions;
  std::unique_ptr<Session> session = sessions.open();

  explicit Reference(const std::string& file) : sessions(file, 2, 0, kOneGroup) {
    REQUIRE(sessions.executor->plan().groups.count == 1);
  }
  std::vector<float> after(std::span<const int32_t> text) {
    const std::span<const int32_t> held = session->tokens();
    const auto differs = std::mismatch(held.begin(), held.end(), text.begin(), text.end()).first;
    const bool states = sessions.executor->plan().states;
    const size_t same = states ? 0 : std::min<size_t>(size_t(differs - held.begin()), text.size() - 1);
    REQUIRE(session->truncate(uint32_t(same)).ok());
    Status status;
    std::vector<float> logits = logits_of(*session, text.subspan(same), &status);
    REQUIRE(status.ok());
    return logits;
  }
};

}  // namespace greta::test
