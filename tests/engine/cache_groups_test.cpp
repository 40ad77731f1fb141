// Groups of the cache, and checkpoints: whatever was forked, truncated, saved, restored or forgotten, a text
// goes on as if it had been read from its beginning.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstring>
#include <random>

#include "engine/serve_rig.h"
#include "support/model_file.h"
#include "support/saved_session.h"

using namespace greta;
using namespace greta::test;

namespace {

// The layers of a file's shape, and what its cache takes in f16.
struct Shapes {
  Shape shape;
  uint64_t layer_page_bytes;
  Shapes(uint32_t layers, uint32_t period, uint32_t window, uint32_t kv_heads, uint32_t width) {
    shape.layers = layers;
    for (uint32_t l = 0; l < layers; ++l) {
      LayerShape layer;
      layer.window = (l + 1) % period ? window : 0;
      shape.each.push_back(layer);
    }
    layer_page_bytes = uint64_t(kPageTokens) * kv_heads * width * 2 * 2;
  }
  uint64_t bytes(uint32_t context, uint32_t sequences = 1, uint64_t checkpoint_bytes = 0) const {
    const uint32_t pages = uint32_t(divide_up(context, kPageTokens));
    uint64_t bytes = uint64_t(pages) * kPageTokens * sizeof(uint32_t);  // the token log
    const std::vector<uint64_t> page_bytes(shape.layers, layer_page_bytes);
    const CacheGroups groups =
        plan_cache_groups(shape, {sequences, kMaxStepTokens, pages, page_bytes, checkpoint_bytes});
    for (const CacheGroup& group : groups.all()) {
      CHECK(group.page_bytes == layer_page_bytes * group.layers);
      bytes += group.page_bytes * group.pages;
    }
    return bytes;
  }
};

// Without a key the model is as the golden.
std::string windowed(const char* golden, const char* key, uint32_t window) {
  ModelFile file = read_model(golden);
  if (key) file.set_u32(key, window);
  return write_model(file);
}

struct Windowed {
  const char* golden;
  const char* key;
  uint32_t window;
};
constexpr Windowed kModels[] = {{"gemma3-pattern3", "gemma3.attention.sliding_window", 100},
                                {"gpt-oss-f32", "gpt-oss.attention.sliding_window", 65}};
// Models whose layers keep states: of a convolution, of the gated delta rule as well, and where no layer
// attends.
constexpr Windowed kHybrids[] = {
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

std::vector<float> logits_of(Session& session, std::span<const int32_t> tokens, Status* status) {
  const float* logits = nullptr;
  *status = session.eval(tokens, OutputRows::Last, &logits);
  if (!status->ok()) return {};
  return {logits, logits + session.executor().model().shape.vocab};
}

// A session that never lost a page, brought to each text. One with states reads each from its beginning.
struct Reference {
  Sessions sessions;
  std::unique_ptr<Session> session = sessions.open();

  explicit Reference(const std::string& file) : sessions(file, 1, 0, kOneGroup) {
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

// Random calls on a few sessions.
class RandomCalls {
 public:
  RandomCalls(const Windowed& model, uint32_t seed)
      : file_(windowed(model.golden, model.key, model.window)),
        reference_(file_),
        sessions_(file_, kSessions, 1536),
        random_(seed) {
    REQUIRE(sessions_.executor->plan().groups.count == (model.key ? 2 : 1));
    REQUIRE(bool(sessions_.executor->plan().states) == !model.key);
    sessions_.engine.model->log = {[](void* user, uint32_t level, const char* text) {
                                     static_cast<RandomCalls*>(user)->again_ +=
                                         LogLevel(level) == LogLevel::Debug && strstr(text, "read again");
                                   },
                                   this};
    for (auto& session : open_) session = sessions_.open();
  }

  void run(int calls) {
    for (int i = 0; i < calls; ++i) {
      INFO("call " << i);
      Session& session = *open_[random_() % kSessions];
      switch (random_() % 8) {
        case 0:
          truncate(session);
          break;
        case 1:
          fork();
          break;
        case 2:
          save_it(session);
          break;
        case 3:
          restore_it(session);
          break;
        case 4:
          generate(session);
          break;
        default:
          eval(session);
      }
    }
    CHECK(full_ > 0);
    CHECK(again_ > 0);
  }
  // All pages are free again when all sessions are gone.
  void check_clean() {
    for (auto& session : open_) session.reset();
    Executor& executor = *sessions_.executor;
    while (executor.windows() && executor.windows()->free_pages() < executor.plan().groups.group[1].pages)
      REQUIRE(executor.free_window_page());
    CHECK(executor.pages().free_pages() == executor.plan().pages);
  }

 private:
  static constexpr uint32_t kSessions = 3;

  std::vector<int32_t> some(uint32_t most) {
    std::vector<int32_t> tokens(1 + random_() % most);
    for (int32_t& token : tokens) token = int32_t(3 + random_() % (sessions_.vocab() - 3));
    return tokens;
  }
  std::vector<int32_t> text_of(const Session& session) const {
    return {session.tokens().begin(), session.tokens().end()};
  }
  // A call that found no pages has changed nothing. Then somebody makes room.
  void full(Session& session, const Status& status, const std::vector<int32_t>& before) {
    INFO(error_text());
    REQUIRE(status.code == Code::Full);
    REQUIRE(text_of(session) == before);
    ++full_;
    REQUIRE(open_[random_() % kSessions]->truncate(0).ok());
  }
  void eval(Session& session) {
    std::vector<int32_t> text = text_of(session);
    const std::vector<int32_t> more = some(random_() % 4 ? 150 : 1);
    Status status;
    const std::vector<float> logits = logits_of(session, more, &status);
    if (!status.ok()) return full(session, status, text);
    text.insert(text.end(), more.begin(), more.end());
    REQUIRE(text_of(session) == text);
    REQUIRE(logits == reference_.after(text));
  }
  void generate(Session& session) {
    std::vector<int32_t> text = text_of(session);
    const std::vector<int32_t> more = some(30);
    GenerateOptions options;
    options.max_tokens = 4;
    options.ignore_end = true;
    GenerateResult result;
    const Status status = session.generate(more, options, &result);
    if (!status.ok()) return full(session, status, text);
    CHECK(result.prompt_tokens == more.size());
    const std::vector<int32_t> now = text_of(session);
    text.insert(text.end(), more.begin(), more.end());
    REQUIRE(std::equal(text.begin(), text.end(), now.begin()));
    for (size_t at = text.size(); at < now.size(); ++at) {
      const std::vector<float> logits = reference_.after(std::span(now).first(at));
      REQUIRE(now[at] == std::ranges::max_element(logits) - logits.begin());
    }
  }
  void truncate(Session& session) {
    std::vector<int32_t> text = text_of(session);
    const size_t position = text.size() - std::min<size_t>(text.size(), random_() % 300);
    REQUIRE(session.truncate(uint32_t(position)).ok());
    text.resize(position);
    REQUIRE(text_of(session) == text);
  }
  void fork() {
    const uint32_t to = random_() % kSessions, from = random_() % kSessions;
    if (to == from) return;
    open_[to].reset();
    const Status status = open_[from]->fork(&open_[to]);
    INFO(error_text());
    REQUIRE(status.ok());
    REQUIRE(text_of(*open_[to]) == text_of(*open_[from]));
  }
  void save_it(Session& session) {
    std::string bytes;
    const std::vector<int32_t> text = text_of(session);
    const Status status = save(session, &bytes);
    if (!status.ok()) return full(session, status, text);
    CHECK(bytes.size() == session.state_bytes());
    if (saved_.size() == 8) saved_.erase(saved_.begin());
    saved_.push_back({text, std::move(bytes)});
  }
  void restore_it(Session& session) {
    if (saved_.empty()) return;
    const Saved& saved = saved_[random_() % saved_.size()];
    const std::vector<int32_t> before = text_of(session);
    const Status status = restore(session, saved.bytes);
    if (!status.ok()) return full(session, status, before);
    REQUIRE(text_of(session) == saved.text);
  }

  struct Saved {
    std::vector<int32_t> text;
    std::string bytes;
  };
  const std::string file_;
  Reference reference_;
  Sessions sessions_;
  std::mt19937 random_;
  std::unique_ptr<Session> open_[kSessions];
  std::vector<Saved> saved_;
  uint32_t full_ = 0, again_ = 0;
};

void run_random_calls(std::span<const Windowed> models, int calls) {
  for (const Windowed& model : models) DYNAMIC_SECTION(model.golden) {
      RandomCalls random(model, 7);
      random.run(calls);
      random.check_clean();
    }
}

}  // namespace

TEST_CASE("cache groups: what the cache of known shapes takes", "[engine][groups]") {
  constexpr double kGiB = double(uint64_t(1) << 30);
  const Shapes gemma3_27b(62, 6, 1024, 16, 128), gpt_oss_20b(24, 2, 128, 8, 64);
  CHECK(double(gemma3_27b.bytes(32768)) <= 3.4 * kGiB);
  CHECK(double(gpt_oss_20b.bytes(131072)) <= 3.2 * kGiB);
  const Shapes no_windows(62, 1, 1024, 16, 128);
  CHECK(no_windows.bytes(32768) == uint64_t(512) * (62 * no_windows.layer_page_bytes + 256));
  CHECK(gemma3_27b.bytes(1024) == uint64_t(16) * (62 * gemma3_27b.layer_page_bytes + 256));  // one group
  const uint64_t page = 52 * gemma3_27b.layer_page_bytes;
  CHECK(gemma3_27b.bytes(32768, 1, 40 * page) == gemma3_27b.bytes(32768, 1, 17 * page) + 23 * page);
}

TEST_CASE("cache groups: random calls give the bits of reading a text from its beginning",
          "[engine][groups]") {
  run_random_calls(kModels, 200);
}

TEST_CASE("states: random calls give the bits of reading a text from its beginning", "[engine][groups]") {
  run_random_calls(kHybrids, 200);
}

TEST_CASE("states: the plan counts them, and a saved state of another model is refused", "[engine][groups]") {
  const Windowed& model = kHybrids[1];
  const std::string file = windowed(model.golden, nullptr, 0), lfm2 = windowed("lfm2-converted", nullptr, 0);
  Sessions sessions(file, 2, 0), others(lfm2, 1, 0);
  const ExecutorPlan& plan = sessions.executor->plan();
  const RecurrentShape& shape = sessions.engine.model->shape.recurrence;
  // Three inputs of a convolution over 2 x 2 x 8 keys and 4 x 12 values, and 4 heads of 8 x 12, in 3 layers.
  CHECK(shape.conv_values() == 3 * 80);
  CHECK(shape.scan_values() == 4 * 8 * 12);
  CHECK(plan.state_bytes == 3 * (256 + 384) * sizeof(float));
  const uint64_t pages =
      plan.groups.group[0].page_bytes * plan.pages + plan.pages * kPageTokens * sizeof(uint32_t);
  CHECK(plan.all().cache == pages + plan.states * plan.state_bytes);
  CHECK(plan.states >= 2 + 1 + 2);

  const std::unique_ptr<Session> session = sessions.open(), other = others.open();
  Status status;
  logits_of(*session, some_tokens(90, 3), &status);
  std::string bytes, kept;
  REQUIRE(save(*session, &bytes).ok());
  logits_of(*other, some_tokens(20, 3), &status);
  REQUIRE(save(*other, &kept).ok());
  CHECK(restore(*other, bytes).code == Code::Unsupported);
  std::string now;
  REQUIRE(save(*other, &now).ok());
  CHECK(now == kept);
  bytes[8] = 1;  // of version 1, which has no states
  CHECK_FALSE(restore(*session, bytes).ok());
}

TEST_CASE("cache groups: each turn of a conversation reads its new tokens and few others",
          "[engine][groups]") {
  const std::string file = windowed("gemma3-pattern3", "gemma3.attention.sliding_window", 100);
  Sessions sessions(file, 1, 0, 0, 12100);
  REQUIRE(sessions.executor->plan().groups.count == 2);
  const std::unique_ptr<Session> session = sessions.open();
  GenerateOptions options;
  options.max_tokens = 12;  // half of it is reasoning, which the next turn leaves out
  options.ignore_end = true;
  uint32_t end = 0;
  for (uint32_t turn = 0; turn < 40; ++turn) {
    REQUIRE(session->truncate(end).ok());
    GenerateResult result;
    const std::vector<int32_t> more = some_tokens(300, turn);
    REQUIRE(session->generate(more, options, &result).ok());
    CHECK(result.prompt_tokens == more.size());
    CHECK(result.reread_tokens <= kPageTokens);
    end += uint32_t(more.size());
  }
}

TEST_CASE("cache groups: a session of the first version is read, and one of the second where pages stay",
          "[engine][groups][state]") {
  for (const Windowed& model : kModels) DYNAMIC_SECTION(model.golden) {
      const std::string file = windowed(model.golden, model.key, model.window);
      Sessions stay(file, 1, 0, kOneGroup), go(file, 1, 0);
      Reference reference(file);
      const std::vector<int32_t> text = some_tokens(700, 3), more = some_tokens(20, 4);
      // The texts go on, and go back to where the second version has no pages.
      std::string saved[2];
      for (Sessions* from : {&stay, &go}) {
        const std::unique_ptr<Session> session = from->open();
        Status status;
        logits_of(*session, text, &status);
        std::string& bytes = saved[from == &go];
        REQUIRE(save(*session, &bytes).ok());
        StateHeader header;
        memcpy(&header, bytes.data(), sizeof header);
        CHECK(header.version == (from == &stay ? 1 : 2));
      }
      CHECK(saved[1].size() < saved[0].size());
      for (const std::string& bytes : saved)
        for (Sessions* to : {&stay, &go}) {
          const std::unique_ptr<Session> session = to->open();
          const Status restored = restore(*session, bytes);
          INFO(error_text());
          REQUIRE(restored.ok());
          std::vector<int32_t> whole = text;
          for (const uint32_t position : {700u, 690u, 300u}) {
            REQUIRE(session->truncate(position).ok());
            whole.resize(position);
            whole.insert(whole.end(), more.begin(), more.end());
            Status status;
            const std::vector<float> logits = logits_of(*session, more, &status);
            REQUIRE(status.ok());
            CHECK(logits == reference.after(whole));
          }
        }
    }
}

TEST_CASE("cache groups: answers of requests do not depend on what was cached, lost or set back",
          "[serve][groups]") {
  const Windowed& model = kModels[GENERATE(0, 1)];
  const bool ahead = GENERATE(false, true);
  const std::string file = windowed(model.golden, model.key, model.window);
  ExecutorOptions sizes{.context = 1024, .sequences = 3, .cache_tokens = 1344, .step_tokens = 64};
  sizes.checkpoint_bytes = kOneGroup;
  Rig reference(sizes, {}, false, file);
  const Executor& whole = *reference.engine.executor;
  REQUIRE(whole.plan().groups.count == 1);
  const Shape& shape = whole.model().shape;
  const uint64_t page = whole.cache_bytes(kPageTokens, Executor::CacheForm::Whole) / shape.layers *
                        uint64_t(std::ranges::count(shape.each, model.window, &LayerShape::window));
  sizes.checkpoint_bytes = 8 * page;  // so that the prefix cache has some room for windows
  SchedulerOptions options;
  options.host_cache_bytes = uint64_t(64) << 20;
  options.chunk_tokens = 64;
  Rig rig(sizes, options, ahead, file);
  REQUIRE(rig.engine.executor->plan().groups.count == 2);

  compare_answers(reference, rig);
  const SchedulerCounts counts = rig.scheduler->counts();
  CHECK(counts.cached_tokens > 0);
  CHECK(counts.brought_back > 0);
  rig.check_clean();
}
