// Devices that have less than they claim: plans do without what is not there.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "models/reference_transformer.h"
#include "support/hip_orders.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Run {
  std::vector<float> logits;
  std::string kernels, warnings;
};

void note_warning(void* user, uint32_t level, const char* text) {
  if (level == uint32_t(LogLevel::Warning)) static_cast<Run*>(user)->warnings += text + std::string("\n");
}

void require(Status status) {
  INFO(error_text());
  REQUIRE(status.ok());
}

// A prompt of 40 tokens on the mock.
Run run_prompt(const TinyModel& tiny) {
  Run run;
  const Log log = {note_warning, &run};
  DeviceOptions options = with_mock_hip();
  options.log = log;
  Device* device = nullptr;
  require(open_device("hip0", options, &device));
  Engine engine;
  engine.device.reset(device);
  engine.kernels = std::make_unique<DeviceKernels>(*device);
  Source source;
  require(source.open_memory(tiny.file.data(), tiny.file.size()));
  engine.model = std::make_unique<Model>();
  require(describe_model(std::move(source), *engine.kernels, false, log, engine.model.get()));
  require(load_model(engine.model.get(), {}));
  require(Executor::open(*engine.model, {.context = 64}, uint64_t(1) << 32, &engine.executor));
  uint32_t sequence = 0;
  require(engine.executor->acquire_sequence(&sequence));
  std::vector<Executor::Row> rows;
  for (uint32_t i = 0; i < 40; ++i)
    rows.push_back({(i * 17 + 5) % tiny.shape.vocab, i, sequence,
                    i == 39 ? Executor::Output::Logits : Executor::Output::None});
  require(engine.executor->step(rows));
  run.logits.assign(engine.executor->logits(), engine.executor->logits() + tiny.shape.vocab);
  require(engine.executor->profile(
      rows,
      [](void* to, const Executor::Stage& stage) {
        *static_cast<std::string*>(to) += stage.kernel + std::string("\n");
      },
      &run.kernels));
  return run;
}

double difference(const Run& a, const Run& b) {
  return nmse(a.logits.data(), {b.logits.begin(), b.logits.end()});
}

}  // namespace

TEST_CASE("hip: a device whose matrix instructions multiply wrong does without them", "[hip]") {
  HipOrders orders;
  const TinyModel tiny = make_tiny({.width = 128, .heads = 8, .kv_heads = 2, .head_width = 32});
  for (const char* arch : {"gfx942", "gfx1100"}) {
    orders.set("ARCH", arch);
    orders.set("WRONG_MATRICES", "0");
    const Run right = run_prompt(tiny);
    CHECK_THAT(right.kernels, ContainsSubstring("matmul_tiles_") && ContainsSubstring("attention_tiles_"));
    CHECK(right.warnings.empty());
    orders.set("WRONG_MATRICES", "1");
    const Run without = run_prompt(tiny);
    CHECK_THAT(without.warnings, ContainsSubstring("kernels with matrix instructions are not used: ") &&
                                     ContainsSubstring("multiplies matrices wrong"));
    CHECK_THAT(without.kernels, !ContainsSubstring("_mfma") && !ContainsSubstring("_wmma"));
    CHECK(difference(without, right) < 1e-5);
  }
}

TEST_CASE("hip: kernels with more shared memory than the device has are not used", "[hip]") {
  HipOrders orders;
  const TinyModel tiny = make_tiny({.width = 128, .heads = 8, .kv_heads = 2, .head_width = 32});
  orders.set("ARCH", "gfx942");
  const Run right = run_prompt(tiny);
  orders.set("SHARED", "24576");
  const Run without = run_prompt(tiny);
  CHECK_THAT(without.warnings, ContainsSubstring("bytes of shared memory, ") &&
                                   ContainsSubstring("allows 24576"));
  CHECK_THAT(without.kernels, !ContainsSubstring("matmul_tiles_"));
  CHECK(difference(without, right) < 1e-5);
}
