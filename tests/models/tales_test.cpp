// The bundled model with the fastest kernels of this machine: the same bits whatever the threads, close
// logits however a prompt is cut, and the greedy text of a float64 forward pass.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <functional>

#include "models/reference_transformer.h"
#include "places.h"
#include "support/test_device.h"

using namespace greta;
using namespace greta::test;

namespace {

void open_tales(bool exact, uint32_t threads, Engine* out, uint32_t features = ~0u) {
  const auto require = [](Status status) {
    INFO(error_text());
    REQUIRE(status.ok());
  };
  DeviceOptions options;
  options.threads = threads;
  options.features_mask = features;
  Device* device = nullptr;
  require(open_device(test::test_device(), options, &device));
  out->device.reset(device);
  out->kernels = std::make_unique<DeviceKernels>(*device);
  Source source;
  require(source.open_file(GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf"));
  out->model = std::make_unique<Model>();
  require(describe_model(std::move(source), *out->kernels, exact, Log{}, out->model.get()));
  require(load_model(out->model.get(), {}));
  require(Executor::open(*out->model, {.context = 512}, uint64_t(1) << 32, &out->executor));
}

std::unique_ptr<Session> open_session(Engine& engine) {
  std::unique_ptr<Session> session;
  REQUIRE(Session::open(std::shared_ptr<Executor>(engine.executor.get(), [](Executor*) {}), &session).ok());
  return session;
}

const char* const kPrompt =
    "The king said to his daughter, \"If you can find the ring that I lost in the wood, "
    "you shall have half of my kingdom, and a white horse to ride upon.\" So the girl went";

std::vector<int32_t> prompt_tokens(Engine& engine) {
  std::vector<int32_t> tokens;
  REQUIRE(engine.model->tokenizer->encode(kPrompt, {true, true}, &tokens).ok());
  REQUIRE(tokens.size() > 32);
  return tokens;
}

std::vector<float> last_logits(Engine& engine, size_t piece) {
  const auto tokens = prompt_tokens(engine);
  const auto session = open_session(engine);
  const float* logits = nullptr;
  for (size_t at = 0; at < tokens.size(); at += piece)
    REQUIRE(
        session->eval({tokens.data() + at, std::min(piece, tokens.size() - at)}, OutputRows::Last, &logits)
            .ok());
  return {logits, logits + engine.model->shape.vocab};
}

}  // namespace

TEST_CASE("tales: the same bits for any number of threads, over 100 runs", "[models]") {
  std::vector<float> one_by_one, together;
  for (const uint32_t threads : {1u, 2u, 3u}) {
    Engine engine;
    open_tales(false, threads, &engine);
    const auto a = last_logits(engine, 1), b = last_logits(engine, 512);
    if (threads == 1) one_by_one = a, together = b;
    CHECK(a == one_by_one);
    CHECK(b == together);
    if (threads == 2)
      for (int run = 0; run < 100; ++run) REQUIRE(last_logits(engine, 512) == together);
  }
}

TEST_CASE("tales: pieces of a prompt give close logits, with plain kernels the same bits", "[models]") {
  for (const bool exact : {true, false}) {
    Engine engine;
    open_tales(exact, 2, &engine);
    const auto whole = last_logits(engine, 512);
    const std::vector<double> reference(whole.begin(), whole.end());
    for (const size_t piece : {1, 5, 8, 16, 31}) {
      const auto logits = last_logits(engine, piece);
      INFO("pieces of " << piece << ", exact " << exact);
      if (exact) CHECK(logits == whole);
      CHECK(nmse(logits.data(), reference) < 1e-3);
    }
  }
}

TEST_CASE("tales: every instruction set gives close logits", "[models]") {
  Engine plain;
  open_tales(true, 2, &plain);
  const auto want = last_logits(plain, 512);
  const std::vector<double> reference(want.begin(), want.end());
  for (const uint32_t features : {0u, uint32_t(kCpuAvx2), uint32_t(kCpuAvx2 | kCpuAvx512Vnni), ~0u}) {
    Engine engine;
    open_tales(false, 2, &engine, features);
    for (const size_t piece : {1, 3, 512}) {
      INFO("features " << features << ", pieces of " << piece);
      CHECK(nmse(last_logits(engine, piece).data(), reference) < 1e-3);
    }
  }
}

TEST_CASE("chain: logits are the same bits without one", "[models]") {
  if (on_cpu()) SKIP("for Vulkan");
  Engine with, without;
  open_tales(false, 0, &with);
  open_tales(false, 0, &without, ~kVulkanChains);
  for (const size_t piece : {1, 3, 512}) CHECK(last_logits(with, piece) == last_logits(without, piece));
}

// What a float64 forward pass writes after BOS alone.
constexpr int32_t kWant[] = {1974, 612, 266,  551,  19,  305,  266,  2381, 323,  267,
                             3033, 19,  450,  946,  266, 3867, 3549, 1450, 1145, 317,
                             2964, 72,  21,   2964, 72,  1279, 285,  2515, 266,  2575,
                             561,  267, 2128, 19,   390, 357,  470,  365,  399,  319};

TEST_CASE("tales: greedy tokens are those of a float64 forward pass", "[models]") {
  Engine engine;
  open_tales(true, 2, &engine);
  const auto session = open_session(engine);
  std::vector<int32_t> got;
  GenerateOptions options;
  options.max_tokens = std::size(kWant);
  options.user = &got;
  options.on_token = [](void* user, int32_t token, const char*, size_t) {
    static_cast<std::vector<int32_t>*>(user)->push_back(token);
    return 0;
  };
  GenerateResult result;
  const int32_t bos = engine.model->tokenizer->bos();
  REQUIRE(session->generate({&bos, 1}, options, &result).ok());
  CHECK(got == std::vector<int32_t>(std::begin(kWant), std::end(kWant)));
}

TEST_CASE("tales: kernels that round write these tokens too where one is clearly the likeliest", "[models]") {
  const auto logits_of = [](bool exact, uint32_t features) {
    Engine engine;
    open_tales(exact, 2, &engine, features);
    const auto session = open_session(engine);
    std::vector<int32_t> tokens = {engine.model->tokenizer->bos()};
    tokens.insert(tokens.end(), std::begin(kWant), std::end(kWant));
    std::vector<std::vector<float>> rows;
    for (size_t i = 0; i < std::size(kWant); ++i) {
      const float* logits = nullptr;
      REQUIRE(session->eval({&tokens[i], 1}, OutputRows::Last, &logits).ok());
      rows.emplace_back(logits, logits + engine.model->shape.vocab);
    }
    return rows;
  };
  const auto exact = logits_of(true, ~0u);
  const auto second_best = [](std::vector<float> row) {
    std::ranges::nth_element(row, row.begin() + 1, std::greater<>());
    return row[1];
  };
  for (const uint32_t features : {0u, uint32_t(kCpuAvx2), uint32_t(kCpuAvx2 | kCpuAvx512Vnni), ~0u}) {
    const auto rounded = logits_of(false, features);
    int clear = 0;
    for (size_t i = 0; i < std::size(kWant); ++i) {
      const std::vector<float>& row = rounded[i];
      const float wanted = row[size_t(kWant[i])], most = *std::ranges::max_element(row);
      INFO("features " << features << ", token " << i);
      CHECK(most - wanted < 0.25f);
      if (exact[i][size_t(kWant[i])] - second_best(exact[i]) < 0.25f) continue;
      CHECK(most == wanted);
      ++clear;
    }
    CHECK(clear >= 20);
  }
}
