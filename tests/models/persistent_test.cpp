// A plan as one launch of HIP's kernel decode_stages, on the mock runtime: the same bits as its launches
// have, and what becomes of a plan whose groups do not meet.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "backends/hip/persistent.h"
#include "kernels/abi/persistent.h"
#include "models/reference_transformer.h"
#include "support/hip_orders.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Lines {
  std::vector<std::string> listed, refused, warnings;
  static void write(void* user, uint32_t level, const char* text) {
    auto& lines = *static_cast<Lines*>(user);
    const std::string line = text;
    if (level == uint32_t(LogLevel::Warning)) lines.warnings.push_back(line);
    if (line.find(" is one launch of ") != line.npos) lines.listed.push_back(line);
    if (line.find(" is not one launch: ") != line.npos) lines.refused.push_back(line);
  }
};

struct Opened {
  Lines lines;
  Engine engine;
  std::shared_ptr<Session> session;

  void require(Status status) {
    INFO(error_text());
    REQUIRE(status.ok());
  }
  explicit Opened(bool persistent, bool exact = false) {
    DeviceOptions options = with_mock_hip();
    options.persistent = persistent;
    options.log = {Lines::write, &lines};
    Device* device = nullptr;
    require(open_device("hip0", options, &device));
    engine.device.reset(device);
    Source source;
    require(source.open_file(GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf"));
    engine.model = std::make_unique<Model>();
    require(describe_model(std::move(source), *device, exact, Log{}, engine.model.get()));
    require(load_model(engine.model.get(), {}));
    require(Executor::open(*engine.model, {.context = 512}, uint64_t(1) << 32, &engine.executor));
  }

  // The logits behind each of these tokens.
  std::vector<float> logits(uint32_t count) {
    std::unique_ptr<Session> session;
    require(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session));
    std::vector<float> all;
    for (uint32_t i = 0; i < count; ++i) {
      const int32_t token = int32_t(100 + 7 * i);
      const float* row = nullptr;
      require(session->eval({&token, 1}, OutputRows::Last, &row));
      all.insert(all.end(), row, row + engine.model->shape.vocab);
    }
    return all;
  }

  // What the device draws, each token from the one before, with two steps under way.
  std::vector<uint32_t> drawn(uint32_t count) {
    Executor& executor = *engine.executor;
    uint32_t sequence = 0, before = 0;
    require(executor.acquire_sequence(&sequence));
    DeviceSampling sampling = {};
    sampling.params.temperature = 0.8f;
    sampling.params.top_k = 40;
    sampling.params.seed_low = 7;
    executor.set_sampling(sequence, sampling);
    std::vector<uint32_t> tokens;
    for (uint32_t i = 0; i <= count; ++i) {
      uint32_t flight = 0;
      if (i < count) {
        const Executor::Row row = {i ? kTokenFromSample : 100, i, sequence, Executor::Output::Draw};
        require(executor.submit({&row, 1}, &flight));
      }
      if (i) {
        require(executor.wait(before));
        tokens.push_back(executor.drawn(sequence, i - 1));
      }
      before = flight;
    }
    executor.release_sequence(sequence);
    return tokens;
  }
};

constexpr uint32_t kLogits = 2, kDrawn = 6;

}  // namespace

TEST_CASE("persistent: a plan in one launch has the bits of its launches", "[models][hip]") {
  HipOrders orders;
  Opened plain(false);
  const auto logits = plain.logits(kLogits);
  const auto drawn = plain.drawn(kDrawn);
  for (const char* seed : {"0", "1", "2"}) {
    orders.set("SEED", seed);
    orders.set("DIES", seed[0] == '2' ? "3" : "1");
    Opened one(true);
    CHECK(one.logits(kLogits) == logits);
    CHECK(one.drawn(kDrawn) == drawn);
    CHECK(one.lines.listed.size() == 2);  // with logits, and with a draw
    CHECK(one.lines.warnings.empty());
  }
}

TEST_CASE("persistent: groups that do not meet end in plain launches with the same results",
          "[models][hip]") {
  HipOrders orders;
  Opened plain(false);
  const auto logits = plain.logits(kLogits);
  const auto drawn = plain.drawn(kDrawn);
  const struct {
    const char *order, *how, *says;
  } cases[] = {{"RESIDENT", "5", "before launch 1 of"},  // some groups never begin
               {"GRID", "stuck 1", "before launch 2 of"},
               {"GRID", "stuck 9", "did not meet"},
               {"GRID", "lost 7", "did not meet"},
               {"GRID", "further", "the end"}};
  for (const auto& wrong : cases) {
    CAPTURE(wrong.order, wrong.how);
    Opened one(true);
    orders.set(wrong.order, wrong.how);
    CHECK(one.drawn(kDrawn) == drawn);
    CHECK(one.logits(kLogits) == logits);
    orders.none();
    REQUIRE(one.lines.warnings.size() == 1);
    CHECK_THAT(one.lines.warnings[0], ContainsSubstring(wrong.says));
    CHECK(one.lines.listed.size() == 1);  // the next plan is not tried
  }
}

TEST_CASE("persistent: a launch that the driver refuses is given as launches", "[models][hip]") {
  HipOrders orders;
  Opened one(true);
  orders.set("FAIL", "hipModuleLaunchCooperativeKernel 2 720");
  const auto drawn = one.drawn(kDrawn);
  orders.none();
  CHECK(drawn == Opened(false).drawn(kDrawn));
  REQUIRE(one.lines.warnings.size() == 1);
  CHECK_THAT(one.lines.warnings[0], ContainsSubstring("hipModuleLaunchCooperativeKernel"));
}

TEST_CASE("persistent: a plan with other kernels stays as it is, and says which", "[models][hip]") {
  HipOrders orders;
  Opened one(true, true);
  (void)one.logits(1);
  CHECK(one.lines.listed.empty());
  REQUIRE_FALSE(one.lines.refused.empty());
  CHECK_THAT(one.lines.refused.back(),
             ContainsSubstring("matmul_plain_") || ContainsSubstring("embed_plain_"));
}

TEST_CASE("persistent: a device without code for it is refused", "[models][hip]") {
  HipOrders orders;
  orders.set("ARCH", "gfx1200");
  DeviceOptions options = with_mock_hip();
  options.persistent = true;
  Device* device = nullptr;
  CHECK(orders.open(&device, options).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("decode_stages") && ContainsSubstring("gfx1200"));
}

TEST_CASE("persistent: the backend and the kernel agree on the list", "[models][hip]") {
  CHECK(HipListedLaunch::kThreads == kPersistentThreads);
  CHECK(HipListedLaunch::kBlockBytes == kPersistentBlockBytes);
  CHECK(kHipGridBytes == kGridLines * kPersistentLine * sizeof(uint32_t));
  CHECK(sizeof(HipListedLaunch) == sizeof(PersistentLaunch));
  CHECK(offsetof(HipListedLaunch, body) == offsetof(PersistentLaunch, body));
  CHECK(offsetof(HipListedLaunch, threads) == offsetof(PersistentLaunch, threads));
  CHECK(offsetof(HipListedLaunch, groups_x) == offsetof(PersistentLaunch, groups_x));
  CHECK(offsetof(HipListedLaunch, groups_y) == offsetof(PersistentLaunch, groups_y));
  CHECK(offsetof(HipListedLaunch, groups) == offsetof(PersistentLaunch, groups));
  CHECK(offsetof(HipListedLaunch, first) == offsetof(PersistentLaunch, first));
  CHECK(offsetof(HipListedLaunch, meets) == offsetof(PersistentLaunch, meets));
  CHECK(offsetof(HipListedLaunch, block) == offsetof(PersistentLaunch, block));
  CHECK(sizeof(HipPersistentBlock) == sizeof(PersistentBlock));
  CHECK(offsetof(HipPersistentBlock, state) == offsetof(PersistentBlock, state));
  CHECK(offsetof(HipPersistentBlock, report) == offsetof(PersistentBlock, report));
  CHECK(offsetof(HipPersistentBlock, launches) == offsetof(PersistentBlock, launches));
  CHECK(offsetof(HipPersistentBlock, polls) == offsetof(PersistentBlock, polls));
}
