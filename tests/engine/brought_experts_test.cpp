// Experts that lie on another device than their layer, and whose weights are brought to it for long steps.
#include <chrono>
#include <thread>

#include "support/brought.h"
#include "support/gguf_writer.h"

using namespace greta;
using namespace greta::test;

namespace {

// Says that its kernels are not functions of this process, as a GPU's.
class AsGpu final : public ForwardingDevice {
 public:
  explicit AsGpu(Device& inner) : ForwardingDevice(inner) { info_.host_functions = false; }
};

// A model of one layer, of whose experts each token has so many parameters that a processor takes no step of
// 512. All weights are 0.
std::string file_with_large_experts() {
  constexpr uint32_t kWidth = 4096, kExperts = 8, kHead = 64;
  GgufWriter w;
  w.value("general.architecture", "llama").value("general.name", "large experts");
  w.value("tokenizer.ggml.model", "llama").value("tokenizer.ggml.bos_token_id", 1u);
  w.value("tokenizer.ggml.tokens", std::vector<std::string>{"<unk>", "<s>", "</s>", "a"});
  w.value("tokenizer.ggml.scores", std::vector<float>(4, 0.0f));
  w.value("llama.block_count", 1u).value("llama.embedding_length", kWidth);
  w.value("llama.feed_forward_length", kWidth).value("llama.context_length", 512u);
  w.value("llama.attention.head_count", 1u).value("llama.attention.head_count_kv", 1u);
  w.value("llama.attention.key_length", kHead).value("llama.attention.value_length", kHead);
  w.value("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  w.value("llama.expert_count", kExperts).value("llama.expert_used_count", kExperts);
  const auto tensor = [&](const char* name, QuantType type, const std::vector<uint64_t>& ne) {
    uint64_t values = 1;
    for (const uint64_t n : ne) values *= n;
    w.tensor(name, quant_info(type).gguf_id, ne, std::string(quant_bytes(type, values), 0));
  };
  tensor("token_embd.weight", QuantType::f32, {kWidth, 4});
  tensor("output_norm.weight", QuantType::f32, {kWidth});
  for (const char* name : {"blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"})
    tensor(name, QuantType::f32, {kWidth});
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"})
    tensor(name, QuantType::f32, {kWidth, kHead});
  tensor("blk.0.attn_output.weight", QuantType::f32, {kHead, kWidth});
  tensor("blk.0.ffn_gate_inp.weight", QuantType::f32, {kWidth, kExperts});
  for (const char* name :
       {"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight", "blk.0.ffn_down_exps.weight"})
    tensor(name, QuantType::iq1_s, {kWidth, kWidth, kExperts});
  return w.file();
}

}  // namespace

TEST_CASE("placement: a segment brings the experts of one layer", "[engine][devices]") {
  const auto cut = [](const Placement& placement, const std::vector<bool>& brings) {
    std::string text;
    for (const Segment& s : segments_of(placement, brings))
      text += std::to_string(s.device) + ":" + "trics"[int(s.arrives)] + std::to_string(s.first_layer) + "-" +
              std::to_string(s.layers_end) + "trics"[int(s.leaves)] +
              (s.brings == kNoLayer ? "" : "b" + std::to_string(s.brings)) + " ";
    return text;
  };
  // t: tokens or outputs, r: residual, i: what experts read, c: what they make, s: stays
  CHECK(cut({{0, 0, 0, 0, 0}, {1, 1, 1}}, {true, true, true}) == "0:t0-1sb0 0:s1-2sb1 0:s2-3tb2 ");
  CHECK(cut({{0, 0, 0, 0, 0}, {1, 0, 1}}, {true, false, true}) == "0:t0-2sb0 0:s2-3tb2 ");
  CHECK(cut({{0, 0, 0, 0, 0}, {1, 1, 0}}, {false, true, false}) == "0:t0-1i 1:i0-1c 0:c0-3tb1 ");
  CHECK(cut({{0, 0, 1, 1, 1}, {1, 0, 1}}, {true, true, false}) == "0:t0-1rb0 1:r1-3tb1 ");
}

TEST_CASE("devices: long steps bring experts, and short ones leave them where they are",
          "[engine][devices]") {
  const std::string file = file_with_experts();
  const auto prompt = first_tokens(70), more = first_tokens(3);
  Brought whole(file, ""), brought(file), apart(file, "experts");
  REQUIRE(brought.engine.executor->plan().brings);
  REQUIRE_FALSE(apart.engine.executor->plan().brings);
  const uint32_t layers = brought.engine.model->shape.layers;
  const uint64_t waits = brought.second.waits;
  const auto want = whole.logits_after(prompt);
  check_same(brought.logits_after(prompt), want);
  CHECK(brought.second.waits - waits == 5);  // one a step, in which it has nothing to do
  const uint64_t waits_apart = apart.second.waits;
  check_same(apart.logits_after(prompt), want);
  CHECK(apart.second.waits - waits_apart == 5 * layers);
  const auto want_more = whole.logits_after(more);
  check_same(brought.logits_after(more), want_more);
  check_same(apart.logits_after(more), want_more);
}

TEST_CASE("devices: steps bring experts from the number of tokens on that the caller wants",
          "[engine][devices]") {
  const std::string file = file_with_experts();
  Opening opening(file);
  opening.model.bring_from = 6;
  REQUIRE(opening.describe().ok());
  REQUIRE(place_on(opening.devices, {{0, 0, 0, 0}, {1, 1}}, &opening.model).ok());
  REQUIRE(load_model(&opening.model, {}).ok());
  const uint64_t free[] = {uint64_t(1) << 30, uint64_t(1) << 30};
  std::unique_ptr<Executor> executor;
  REQUIRE(Executor::open(opening.model, {.context = 256}, free, &executor).ok());
  CHECK(executor->brings_at(6));
  CHECK_FALSE(executor->brings_at(5));
  // A caller's wish counts where nothing is gained, and what nobody wished for does not happen there.
  opening.model.bring_from = 0;
  REQUIRE(Executor::open(opening.model, {.context = 256}, free, &executor).ok());
  CHECK_FALSE(executor->brings_at(512));
  CHECK_FALSE(executor->plan().brings);
  // Steps of so many tokens do not happen.
  opening.model.bring_from = 100;
  REQUIRE(Executor::open(opening.model, {.context = 256, .step_tokens = 64}, free, &executor).ok());
  CHECK_FALSE(executor->plan().brings);
}

TEST_CASE("devices: each submission and wait that fails while experts are brought ends in words",
          "[engine][devices]") {
  const std::string file = file_with_experts();
  const auto prompt = first_tokens(40);
  const auto want = Brought(file, "").logits_after(prompt);
  const bool gpu = !on_cpu();  // which waits for two events alone
  enum class Way { Submission, Wait, EventWait };
  for (const Way way : {Way::Submission, Way::Wait, Way::EventWait})
    for (uint32_t at = 1;; ++at) {
      INFO("way " << int(way) << ", at " << at);
      Brought brought(file);
      Submissions& s = brought.first;
      (way == Way::Submission ? s.fail_at
       : way == Way::Wait     ? s.fail_wait_at
                              : s.fail_event_wait_at) = at + (way == Way::Submission ? s.count
                                                          : way == Way::Wait     ? s.waits
                                                                                 : s.event_waits);
      const float* logits = nullptr;
      const Status status = brought.session->eval(prompt, OutputRows::Last, &logits);
      if (status.ok()) {
        CHECK(at > (way == Way::EventWait && gpu ? 2u : 3u));
        break;
      }
      CHECK(status.code == Code::Memory);
      CHECK(told("device first: "));
      CHECK(told("fails"));
      CHECK(brought.session->position() == 0);
      check_same(brought.logits_after(prompt), want);
    }
}

// Of two devices, of which one takes its time whenever it is waited for.
TEST_CASE("devices: from how many tokens on experts are brought is measured", "[engine][devices]") {
  constexpr auto kLong = std::chrono::milliseconds(30);
  const std::string file = file_with_experts();
  for (const bool experts_slow : {true, false}) {
    INFO("experts are slow: " << experts_slow);
    Opening opening(file);
    Submissions first, second;
    FaultyDevice layers_on(*opening.device[0], false, first), experts_on(*opening.device[1], false, second);
    AsGpu gpu(layers_on);
    opening.wrap(0, &gpu), opening.wrap(1, &experts_on);
    REQUIRE(opening.describe().ok());
    opening.model.exact = false;
    REQUIRE(place_on(opening.devices, {{0, 0, 0, 0}, {1, 1}}, &opening.model).ok());
    REQUIRE(load_model(&opening.model, {}).ok());
    const uint64_t free[] = {uint64_t(1) << 30, uint64_t(1) << 30};
    ExecutorOptions options{.context = 256};
    ExecutorPlan plan;
    REQUIRE(Executor::plan(opening.model, &options, free, &plan).ok());
    CHECK(plan.brings);
    (experts_slow ? second : first).on_wait = [&] { std::this_thread::sleep_for(kLong); };
    std::unique_ptr<Executor> executor;
    const Status opened = Executor::open(opening.model, options, free, &executor);
    INFO(error_text());
    REQUIRE(opened.ok());
    first.on_wait = second.on_wait = {};
    CHECK(executor->plan().brings == experts_slow);
    CHECK(executor->brings_at(32) == experts_slow);
    CHECK_FALSE(executor->brings_at(31));
    CHECK((executor->plan().on[0].tables == plan.on[0].tables) ==
          experts_slow);  // else the room is given back
    std::unique_ptr<Session> session;
    REQUIRE(Session::open({executor.get(), [](Executor*) {}}, &session).ok());
    const float* logits = nullptr;
    CHECK(session->eval(first_tokens(40), OutputRows::Last, &logits).ok());
    session.reset();
    executor.reset();
    // Without room nothing is brought, and nothing is refused.
    uint64_t less[] = {plan.on[0].total() - 1, free[1]};
    ExecutorPlan without;
    REQUIRE(Executor::plan(opening.model, &options, less, &without).ok());
    CHECK_FALSE(without.brings);
    CHECK(without.on[0].total() <= less[0]);
    CHECK(without.context == 256);
    opening.close();
  }
}

TEST_CASE("devices: a processor limits no steps that bring its experts", "[engine][devices]") {
  Opening opening(file_with_large_experts());
  Submissions first, second;
  FaultyDevice layers_on(*opening.device[0], false, first), experts_on(*opening.device[1], false, second);
  AsGpu gpu(layers_on);
  opening.wrap(0, &gpu), opening.wrap(1, &experts_on);
  const Status described = opening.describe();
  INFO(error_text());
  REQUIRE(described.ok());
  opening.model.exact = false;
  const auto step_tokens = [&](const Placement& placement, uint32_t bring_from, uint64_t less = 0) {
    opening.model.bring_from = bring_from;
    REQUIRE(place_on(opening.devices, placement, &opening.model).ok());
    uint64_t free[] = {uint64_t(1) << 30, uint64_t(1) << 30};
    ExecutorOptions options{.context = 256};
    ExecutorPlan plan;
    REQUIRE(Executor::plan(opening.model, &options, free, &plan).ok());
    if (less) {
      free[0] = plan.on[0].total() - less;
      REQUIRE(Executor::plan(opening.model, &options, free, &plan).ok());
    }
    CHECK(plan.apart_tokens == 256);
    CHECK(plan.brings == (plan.step_tokens == 512));
    return plan.step_tokens;
  };
  const Placement experts_apart = {{0, 0, 0}, {1}};
  CHECK(step_tokens(experts_apart, 0) == 512);
  CHECK(step_tokens(experts_apart, 300) == 512);
  CHECK(step_tokens(experts_apart, kNeverBring) == 256);
  CHECK(step_tokens(experts_apart, 0, 1) == 256);  // there is no room for what is brought
  CHECK(step_tokens({{0, 1, 1}, {}}, 0) == 256);   // the processor has the layer
  CHECK(step_tokens({{0, 0, 1}, {1}}, kNeverBring) == 256);
  // Nothing is gained, since the layer's device takes its time.
  REQUIRE(step_tokens(experts_apart, 0) == 512);
  REQUIRE(load_model(&opening.model, {}).ok());
  first.idle = second.idle = true;
  first.on_wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  const uint64_t free[] = {uint64_t(1) << 30, uint64_t(1) << 30};
  std::unique_ptr<Executor> executor;
  REQUIRE(Executor::open(opening.model, {.context = 256}, free, &executor).ok());
  CHECK_FALSE(executor->plan().brings);
  CHECK(executor->plan().step_tokens == 256);
  executor.reset();
  opening.close();
}
