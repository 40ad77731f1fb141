// Models whose experts are on another device than the rest of their layers, and prompts on which two devices
// work at the same time.
#include <cstring>

#include "engine/serve_rig.h"
#include "support/two_devices.h"

using namespace greta;
using namespace greta::test;

TEST_CASE("placement: a layer whose experts are apart lies in three segments", "[engine][devices]") {
  const auto cut = [](const Placement& placement) {
    std::string text;
    for (const Segment& s : segments_of(placement))
      text += std::to_string(s.device) + ":" + "tric"[int(s.arrives)] + std::to_string(s.first_layer) + "-" +
              std::to_string(s.layers_end) + "tric"[int(s.leaves)] + " ";
    return text;
  };
  // t: tokens or outputs, r: residual, i: what experts read, c: what they make
  CHECK(cut({{0, 0, 0, 0}, {0, 0}}) == "0:t0-2t ");
  CHECK(cut({{0, 0, 0, 0}, {1, 0}}) == "0:t0-1i 1:i0-1c 0:c0-2t ");
  CHECK(cut({{0, 0, 0, 0}, {0, 1}}) == "0:t0-2i 1:i1-2c 0:c1-2t ");
  CHECK(cut({{0, 0, 0, 0}, {1, 1}}) == "0:t0-1i 1:i0-1c 0:c0-2i 1:i1-2c 0:c1-2t ");
  CHECK(cut({{0, 0, 1, 1}, {1, 0}}) == "0:t0-1i 1:i0-1c 0:c0-1r 1:r1-2i 0:i1-2c 1:c1-2t ");
}

TEST_CASE("placement: rules move a layer's experts, or all but these", "[engine][devices]") {
  Opening opening(file_with_experts());
  REQUIRE(opening.describe().ok());
  const uint32_t layers = opening.model.shape.layers;
  REQUIRE(layers >= 2);
  const auto moved = [&](std::vector<std::pair<const char*, int>> rules, Placement* out) {
    *out = Placement::whole(layers);
    const auto device_of = [&](const char* name) {
      for (const auto& [text, device] : rules)
        if (strstr(name, text)) return device;
      return -1;
    };
    return move_tensors(opening.model, device_of, out);
  };
  Placement p;
  REQUIRE(moved({{"blk.1.ffn_up_exps", 1}, {"blk.1.ffn_gate_exps", 1}, {"blk.1.ffn_down_exps", 1}}, &p).ok());
  CHECK(std::ranges::count(p.device, 0) == layers + 2);
  CHECK(std::ranges::count(p.experts, 1) == 1);
  CHECK(p.experts_of(1) == 1);
  REQUIRE(moved({{"blk.1.", 1}}, &p).ok());
  CHECK(p.layer(1) == 1);
  CHECK(p.experts_of(1) == 1);
  CHECK(p.layer(0) == 0);
  REQUIRE(moved({{"exps", 0}, {"blk", 1}}, &p).ok());  // the first that finds a name counts
  CHECK(std::ranges::count(p.experts, 0) == layers);
  CHECK(p.layer(0) == 1);
  CHECK(p.embedding() == 0);
  CHECK(moved({{"blk.0.ffn_up_exps", 1}}, &p).code == Code::Unsupported);
  CHECK(told("blk.0.ffn_up_exps.weight"));
  CHECK(told("the experts of a layer are on one device"));
  CHECK(moved({{"attn_q", 1}}, &p).code == Code::Unsupported);
  CHECK(told("a layer but for its experts is on one device"));
}

TEST_CASE("placement: experts of the last layers leave a device before whole layers do",
          "[engine][devices]") {
  const PieceSizes sizes = {
      .pieces = {10, 20, 20, 20, 10}, .experts = {100, 100, 100}, .beside = 50, .crossing = 5};
  const auto placed = [&](uint64_t free, uint32_t experts_end) {
    Placement p = Placement::whole(3);
    const uint64_t bytes[] = {free};
    std::string text = fill_devices({&sizes, 1}, bytes, experts_end, &p) ? "all " : "";
    for (const auto* each : {&p.device, &p.experts}) {
      for (const uint8_t device : *each) text += char('0' + device);
      text += ' ';
    }
    return text;
  };
  CHECK(placed(435, 3) == "all 00000 000 ");
  CHECK(placed(434, 3) == "00001 000 ");
  CHECK(placed(335, 2) == "all 00000 001 ");
  CHECK(placed(235, 1) == "all 00000 011 ");
  CHECK(placed(135, 0) == "all 00000 111 ");
  CHECK(placed(134, 0) == "00001 111 ");
  CHECK(placed(104, 0) == "00111 111 ");
}

TEST_CASE("devices: each submission and wait that fails with experts apart names its device",
          "[engine][devices]") {
  const std::string file = file_with_experts();
  const auto tokens = first_tokens(20), more = first_tokens(3);
  std::vector<float> want;
  for (const bool second : {false, true})
    for (uint32_t at = 0;; ++at) {
      INFO((second ? "second, wait " : "first, wait ") << at);
      Submissions submissions;
      const auto wrap = [&](Device& device) -> std::unique_ptr<Device> {
        return std::make_unique<FaultyDevice>(device, false, submissions);
      };
      EngineOptions options;
      options.split = "experts";
      (second ? options.wrap_second : options.wrap) = wrap;
      Engine engine;
      open_engine(file, options, &engine);
      std::unique_ptr<Session> session;
      REQUIRE(Session::open(shared(engine), &session).ok());
      const float* logits = nullptr;
      REQUIRE(session->eval(tokens, OutputRows::Last, &logits).ok());
      submissions.fail_wait_at = submissions.waits + 1 + at;
      const Status status = session->eval(more, OutputRows::Last, &logits);
      if (!status.ok()) {
        CHECK(status.code == Code::Memory);
        CHECK(told(second ? "device second: " : "device first: "));
        CHECK(session->position() == tokens.size());
        submissions.fail_wait_at = 0;
        REQUIRE(session->eval(more, OutputRows::Last, &logits).ok());
      }
      const std::vector<float> got(logits, logits + engine.model->shape.vocab);
      if (want.empty()) want = got;
      CHECK(got == want);
      if (status.ok()) {
        CHECK(at == engine.model->shape.layers);  // a wait at each crossing from the device
        break;
      }
    }
}

TEST_CASE("devices: pieces of a prompt run on both at the same time, with the same bits",
          "[engine][devices]") {
  const TinyModel tiny = make_tiny(four_layers());
  const auto tokens = first_tokens(150), more = first_tokens(2);
  std::vector<float> want;
  for (const char* split : {"", "middle", "output", "turns"}) {
    INFO("split: " << split);
    EngineOptions options;
    options.split = split;
    options.executor.step_tokens = 16;
    Engine engine;
    open_engine(tiny.file, options, &engine);
    std::unique_ptr<Session> session;
    REQUIRE(Session::open(shared(engine), &session).ok());
    const float* logits = nullptr;
    std::vector<float> got;
    for (const auto& part : {tokens, more, tokens}) {
      if (part.size() + session->position() > 256) break;
      REQUIRE(session->eval(part, OutputRows::Last, &logits).ok());
      got.insert(got.end(), logits, logits + tiny.shape.vocab);
    }
    if (want.empty()) want = got;
    check_same(got, want);
  }
}

TEST_CASE("devices: a piece of a prompt that fails while the next one runs takes the prompt back",
          "[engine][devices]") {
  const TinyModel tiny = make_tiny(four_layers());
  const auto tokens = first_tokens(100);
  std::vector<float> want;
  for (const bool second : {false, true})
    for (uint32_t at = 0; at < 7; ++at) {
      INFO((second ? "second " : "first ") << at);
      Submissions submissions;
      EngineOptions options;
      options.split = "middle";
      options.executor.step_tokens = 16;
      (second ? options.wrap_second : options.wrap) = [&](Device& device) -> std::unique_ptr<Device> {
        return std::make_unique<FaultyDevice>(device, false, submissions);
      };
      Engine engine;
      open_engine(tiny.file, options, &engine);
      std::unique_ptr<Session> session;
      REQUIRE(Session::open(shared(engine), &session).ok());
      const float* logits = nullptr;
      (second ? submissions.fail_event_wait_at : submissions.fail_wait_at) =
          1 + at + (second ? submissions.event_waits : submissions.waits);
      CHECK(session->eval(tokens, OutputRows::Last, &logits).code == Code::Memory);
      CHECK(told(second ? "device second: " : "device first: "));
      CHECK(session->position() == 0);
      submissions.fail_event_wait_at = submissions.fail_wait_at = 0;
      REQUIRE(session->eval(tokens, OutputRows::Last, &logits).ok());
      const std::vector<float> got(logits, logits + tiny.shape.vocab);
      if (want.empty()) want = got;
      CHECK(got == want);
    }
}

TEST_CASE("devices: one that is lost ends the requests with its name, and then the executor goes on",
          "[engine][devices]") {
  for (const char* split : {"middle", "experts"}) {
    INFO("split: " << split);
    const std::string file = *split == 'm' ? make_tiny(four_layers()).file : file_with_experts();
    Submissions submissions;
    EngineOptions options;
    options.split = split;
    options.executor.context = 256;
    options.executor.step_tokens = 16;
    options.wrap_second = [&](Device& device) -> std::unique_ptr<Device> {
      return std::make_unique<FaultyDevice>(device, false, submissions);
    };
    Engine engine;
    open_engine(file, options, &engine);
    const auto bell = std::make_shared<Doorbell>();
    Scheduler scheduler(*engine.executor, {});
    const auto ask = [&](uint32_t prompt) {
      std::shared_ptr<Request> request;
      REQUIRE(
          Request::open(*engine.model, 256, 1000, bell, request_of(some_tokens(prompt, prompt), 8), &request)
              .ok());
      scheduler.add(request);
      return request;
    };
    const auto run = [&] {
      for (int i = 0; scheduler.step(); ++i) REQUIRE(i < 10'000);
    };
    const auto first = ask(60);
    run();
    const std::vector<int32_t> want = answer_of(*first).tokens;
    CHECK(want.size() == 8);
    const std::vector<std::shared_ptr<Request>> lost = {ask(60), ask(90), ask(3)};
    for (int i = 0; i < 3; ++i) scheduler.step();
    submissions.code = Code::Device;
    submissions.fail_after = submissions.count;
    run();
    for (const auto& request : lost) {
      const Answer answer = answer_of(*request);
      CHECK(answer.result.status.code == Code::Device);
      CHECK(std::string(answer.result.error).find("device second: ") != std::string::npos);
    }
    submissions.fail_after = ~0ull;
    const auto again = ask(60);
    run();
    const Answer answer = answer_of(*again);
    INFO(answer.result.error);
    CHECK(answer.tokens == want);
    CHECK(scheduler.live() == 0);
  }
}
