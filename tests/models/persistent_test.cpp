// A plan as one launch of HIP's kernel decode_stages, on the mock runtime: the same bits as its launches
// have, and what becomes of a plan whose groups do not meet.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backends/hip/persistent.h"
#include "kernels/abi/persistent.h"
#include "models/reference_transformer.h"
#include "support/hip_orders.h"
#include "support/model_file.h"

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

constexpr const char* kTales = "../../../models/tales-llama-7m-q4_k_m";  // from the folder of the goldens

struct Opened {
  Lines lines;
  std::string file;
  Engine engine;
  std::shared_ptr<Session> session;

  void require(Status status) {
    INFO(error_text());
    REQUIRE(status.ok());
  }
  explicit Opened(bool persistent, bool exact = false, const ModelFile& model = read_model(kTales))
      : file(write_model(model)) {
    DeviceOptions options = with_mock_hip();
    options.persistent = persistent;
    options.log = {Lines::write, &lines};
    Device* device = nullptr;
    require(open_device("hip0", options, &device));
    engine.device.reset(device);
    engine.kernels = std::make_unique<DeviceKernels>(*device);
    Source source;
    require(source.open_memory(file.data(), file.size()));
    engine.model = std::make_unique<Model>();
    require(describe_model(std::move(source), *engine.kernels, exact, Log{}, engine.model.get()));
    require(load_model(engine.model.get(), {}));
    require(Executor::open(*engine.model, {.context = 512}, uint64_t(1) << 32, &engine.executor));
  }

  // The logits behind each of these tokens.
  std::vector<float> logits(uint32_t count) {
    std::unique_ptr<Session> session;
    require(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session));
    std::vector<float> all;
    for (uint32_t i = 0; i < count; ++i) {
      const int32_t token = int32_t((100 + 7 * i) % engine.model->shape.vocab);
      const float* row = nullptr;
      require(session->eval({&token, 1}, OutputRows::Last, &row));
      all.insert(all.end(), row, row + engine.model->shape.vocab);
    }
    return all;
  }

  // How often the groups of the newest plan meet.
  uint32_t meetings() const {
    const std::string before = "which meet ";
    REQUIRE_FALSE(lines.listed.empty());
    return uint32_t(std::stoul(lines.listed.back().substr(lines.listed.back().find(before) + before.size())));
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
        const Executor::Row row = {i ? kTokenFromSample : 50, i, sequence, Executor::Output::Draw};
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

// The first layer of the model in Q4_K_M.
ModelFile one_layer() {
  ModelFile model = read_model(kTales);
  model.set_u32("llama.block_count", 1);
  std::erase_if(model.tensors, [](const ModelFile::Tensor& t) {
    return t.name.starts_with("blk.") && !t.name.starts_with("blk.0.");
  });
  return model;
}

void add_floats(ModelFile& model, const std::string& name, const std::vector<uint64_t>& ne,
                const std::vector<float>& values) {
  constexpr uint32_t kF32 = 0;
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  model.tensors.push_back({name, kF32, ne, {bytes, values.size() * sizeof(float)}});
}

// The output matrix is no longer the token table, which so lies in GGUF order.
ModelFile with_own_table() {
  ModelFile model = one_layer();
  ModelFile::Tensor output = model.tensor("token_embd.weight");
  output.name = "output.weight";
  model.tensors.push_back(output);
  return model;
}

// Eight experts, each with its rows in another order, of which two are chosen.
ModelFile with_experts() {
  constexpr uint32_t kExperts = 8;
  ModelFile model = one_layer();
  model.set_u32("llama.expert_count", kExperts);
  model.set_u32("llama.expert_used_count", 2);
  std::minstd_rand random(1);
  std::normal_distribution<float> normal;
  for (const std::string name : {"blk.0.ffn_gate", "blk.0.ffn_up", "blk.0.ffn_down"}) {
    ModelFile::Tensor& t = model.tensor(name + ".weight");
    const std::string rows = t.data + t.data;
    const uint64_t row_bytes = t.data.size() / t.ne[1];
    std::string all;
    for (uint32_t e = 0; e < kExperts; ++e) all += rows.substr(e * row_bytes, t.data.size());
    t = {name + "_exps.weight", t.type, {t.ne[0], t.ne[1], kExperts}, all};
  }
  const uint64_t width = model.tensor("output_norm.weight").ne[0];
  std::vector<float> router(width * kExperts);
  for (float& weight : router) weight = normal(random);
  add_floats(model, "blk.0.ffn_gate_inp.weight", {width, kExperts}, router);
  return model;
}

// Norms behind the blocks, as in OLMo 2, instead of before them.
ModelFile with_post_norms() {
  ModelFile model = one_layer();
  for (ModelFile::Value& v : model.values)
    if (v.key.starts_with("llama.")) v.key = "olmo2." + v.key.substr(6);
  set_text("general.architecture", "olmo2")(model);
  model.tensor("blk.0.attn_norm.weight").name = "blk.0.post_attention_norm.weight";
  model.tensor("blk.0.ffn_norm.weight").name = "blk.0.post_ffw_norm.weight";
  for (const std::string heads : {"blk.0.attn_q", "blk.0.attn_k"}) {
    const uint64_t width = model.tensor(heads + ".weight").ne[1];
    add_floats(model, heads + "_norm.weight", {width}, std::vector<float>(width, 1.0f));
  }
  return model;
}

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

TEST_CASE("persistent: models of other kinds are one launch with the bits of its launches",
          "[models][hip]") {
  HipOrders orders;
  const struct {
    const char* what;
    ModelFile model;
  } cases[] = {{"a table in GGUF order", with_own_table()},
               {"experts", with_experts()},
               {"norms behind products", with_post_norms()},
               {"norms behind products of floats", read_model("olmo2-plain")}};
  for (const auto& kind : cases) {
    CAPTURE(kind.what);
    Opened plain(false, false, kind.model), one(true, false, kind.model);
    const bool same = one.logits(kLogits) == plain.logits(kLogits);
    CHECK(same);
    CHECK(one.drawn(kDrawn / 2) == plain.drawn(kDrawn / 2));
    CAPTURE(one.lines.refused);
    CHECK(one.lines.listed.size() == 2);
    CHECK(one.lines.warnings.empty());
  }
}

// A launch's groups count themselves, so that the last one makes something of what all have written. One of
// the eight groups of decode_stages ends, so some of them are counted and others are not.
TEST_CASE("persistent: counters that groups shared when one ended are cleared", "[models][hip]") {
  HipOrders orders;
  for (const ModelFile& model : {with_experts(), with_post_norms()}) {
    Opened plain(false, false, model);
    const auto logits = plain.logits(1);
    for (uint32_t meeting = 2, meetings = 3; meeting < meetings; ++meeting) {
      CAPTURE(meeting);
      Opened one(true, false, model);
      orders.set("GRID", ("stuck " + std::to_string(meeting)).c_str());
      const bool same = one.logits(1) == logits;
      orders.none();
      CHECK(same);
      CHECK(one.lines.warnings.size() == 1);
      meetings = one.meetings();
    }
  }
}

TEST_CASE("persistent: a group that is lost behind the last meeting ends in a failure", "[models][hip]") {
  HipOrders orders;
  Opened one(true, false, one_layer());
  (void)one.logits(1);
  orders.set("GRID", ("stuck " + std::to_string(one.meetings())).c_str());
  const int32_t token = 100;
  const float* row = nullptr;
  std::unique_ptr<Session> session;
  const auto executor = std::shared_ptr<Executor>(one.engine.executor.get(), [](Executor*) {});
  one.require(Session::open(executor, &session));
  CHECK(session->eval({&token, 1}, OutputRows::Last, &row).code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("the end of decode_stages"));
  orders.none();
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
  if (strstr(error_text(), "no code object")) SKIP("this build has no kernels for gfx1200");
  CHECK_THAT(error_text(), ContainsSubstring("decode_stages") && ContainsSubstring("gfx1200"));
}

TEST_CASE("persistent: the backend and the kernel agree on the list", "[models][hip]") {
  CHECK(HipListedLaunch::kThreads == kPersistentThreads);
  CHECK(HipListedLaunch::kBlockBytes == kPersistentBlockBytes);
  CHECK(kHipGridRuns == kGridRuns);
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
