// Models on two devices: where their pieces go, what is refused in words, and what becomes of failures.
#include <cstring>

#include "support/two_devices.h"

using namespace greta;
using namespace greta::test;

using Pieces = std::vector<uint8_t>;

TEST_CASE("placement: steps are cut where the device changes", "[engine][devices]") {
  const auto cut = [](const Pieces& pieces) {
    std::string text;
    for (const Segment& s : segments_of({pieces}))
      text += std::to_string(s.device) + (s.embeds() ? "e" : "") + std::to_string(s.first_layer) + "-" +
              std::to_string(s.layers_end) + (s.ends() ? "o " : " ");
    return text;
  };
  CHECK(cut({0, 0, 0, 0}) == "0e0-2o ");
  CHECK(cut({0, 1, 0, 0}) == "0e0-0 10-1 01-2o ");
  CHECK(cut({0, 0, 0, 1}) == "0e0-2 12-2o ");
  CHECK(cut({1, 1, 0, 0}) == "1e0-1 01-2o ");
}

TEST_CASE("placement: llama.cpp's number of layers, and shares", "[engine][devices]") {
  CHECK(offload(4, {0, {1}, 1}).device == Pieces{1, 1, 1, 1, 1, 1});
  CHECK(offload(4, {1, {1}, 1}).device == Pieces{1, 1, 1, 1, 1, 0});
  CHECK(offload(4, {3, {1}, 1}).device == Pieces{1, 1, 1, 0, 0, 0});
  CHECK(offload(4, {5, {1}, 1}).device == Pieces{0, 0, 0, 0, 0, 0});
  CHECK(offload(4, {~0u, {1}, 1}).device == Pieces{0, 0, 0, 0, 0, 0});
  CHECK(offload(5, {~0u, {1, 1}, 2}).device == Pieces{0, 0, 0, 0, 1, 1, 1});
  CHECK(offload(5, {~0u, {2, 1}, 2}).device == Pieces{0, 0, 0, 0, 0, 1, 1});
  CHECK(offload(5, {~0u, {0, 1}, 2}).device == Pieces{1, 1, 1, 1, 1, 1, 1});
  CHECK(offload(5, {4, {1, 1}, 2}).device == Pieces{2, 2, 2, 0, 0, 1, 1});
}

TEST_CASE("placement: what fits is on the first device, the rest behind it", "[engine][devices]") {
  TinyShape shape = four_layers();  // with much cache in each layer
  shape.kv_heads = 4, shape.head_width = 128;
  Opening opening(shape);
  REQUIRE(opening.describe().ok());
  const ExecutorOptions options{.context = 512};
  const uint64_t much = uint64_t(1) << 30;
  const auto placed = [&](uint64_t first, uint64_t second) {
    const uint64_t free[] = {first, second};
    INFO(error_text());
    REQUIRE(place_by_memory(opening.devices, options, free, &opening.model).ok());
    Pieces pieces = opening.model.placement.device;
    for (uint8_t& d : pieces) d = uint8_t(opening.model.devices[d].number);
    return pieces;
  };
  CHECK(placed(much, 0) == Pieces{0, 0, 0, 0, 0, 0});
  CHECK(opening.model.devices.size() == 1);
  CHECK(placed(0, much) == Pieces{1, 1, 1, 1, 1, 1});
  size_t before = 0, splits = 0;
  for (uint64_t first = 1 << 18; first < (1 << 25); first += first / 10) {
    const Pieces pieces = placed(first, much);
    const size_t there = size_t(std::ranges::count(pieces, uint8_t(0)));
    CHECK(std::ranges::is_sorted(pieces));
    CHECK(there >= before);
    if (there < pieces.size()) CHECK(pieces.back() == 1);
    splits += there > 0 && there < pieces.size();
    before = there;
    // What was placed there has room.
    const bool there_too = opening.model.devices[0].number == 0;
    std::vector<uint64_t> free = {there_too ? first : much, much};
    free.resize(opening.model.devices.size());
    for (size_t d = 0; d < free.size(); ++d) free[d] -= opening.model.store.device_bytes(uint32_t(d));
    ExecutorOptions planned = options;
    ExecutorPlan plan;
    REQUIRE(Executor::plan(opening.model, &planned, free, &plan).ok());
    for (size_t d = 0; d < free.size(); ++d) CHECK(plan.on[d].total() <= free[d]);
  }
  CHECK(splits > 2);
}

TEST_CASE("placement: what is wrong is refused in words", "[engine][devices]") {
  Opening opening;
  REQUIRE(opening.describe().ok());
  CHECK(place_on(opening.devices, {{0, 0}}, &opening.model).code == Code::Argument);
  CHECK(told("a placement of 2 pieces"));
  CHECK(place_on(opening.devices, {{0, 0, 0, 2, 0, 0}}, &opening.model).code == Code::Argument);
  CHECK(told("device 2, but there are 2"));
  REQUIRE(place_on(opening.devices, {{0, 0, 0, 1, 1, 1}}, &opening.model).ok());
  REQUIRE(load_model(&opening.model, {}).ok());
  const uint64_t free[] = {uint64_t(1) << 30, 1000};
  std::unique_ptr<Executor> executor;
  CHECK(Executor::open(opening.model, {.context = 256}, free, &executor).code == Code::Memory);
  CHECK(told("device second: a context of 256 tokens needs"));
  CHECK(told("1000 bytes are free"));
}

TEST_CASE("devices: the memory plan is what is allocated on each", "[engine][devices]") {
  const std::string experts = file_with_experts();
  const Placement placements[] = {{{0, 0, 0, 1, 1, 1}, {}}, {{0, 0, 0, 0, 0, 1}, {}},
                                  {{0, 1, 0, 1, 0, 1}, {}}, {{0, 0, 0, 0}, {0, 1}},
                                  {{0, 0, 0, 0}, {1, 1}},   {{0, 0, 1, 1}, {1, 0}}};
  for (const uint32_t bring_from : {kNeverBring, 1u})
    for (const Placement& placement : placements) {
      if (bring_from == 1 && placement.experts.empty()) continue;
      Opening opening = placement.experts.empty() ? Opening() : Opening(experts);
      opening.model.bring_from = bring_from;
      uint64_t held[2] = {};
      const uint32_t allowed = ~0u;
      SmallDevice first(*opening.device[0], allowed, held[0]), second(*opening.device[1], allowed, held[1]);
      opening.wrap(0, &first), opening.wrap(1, &second);
      REQUIRE(opening.describe().ok());
      REQUIRE(place_on(opening.devices, placement, &opening.model).ok());
      REQUIRE(load_model(&opening.model, {}).ok());
      for (uint32_t d : {0, 1}) CHECK(held[d] == opening.model.store.device_bytes(d));
      const uint64_t weights[] = {held[0], held[1]}, free[] = {uint64_t(1) << 30, uint64_t(1) << 30};
      std::unique_ptr<Executor> executor;
      REQUIRE(Executor::open(opening.model, {.context = 256}, free, &executor).ok());
      CHECK(executor->plan().brings == (bring_from == 1));
      for (uint32_t d : {0, 1}) CHECK(held[d] - weights[d] == executor->plan().on[d].total());
      executor.reset();
      for (uint32_t d : {0, 1}) CHECK(held[d] == weights[d]);
      opening.close();
    }
}

TEST_CASE("devices: each allocation that fails ends in words, and all memory comes back",
          "[engine][devices]") {
  const std::string experts = file_with_experts();
  for (uint32_t way : {0, 1, 2, 3, 4}) {
    const uint32_t faulty = way % 2;
    const Placement placement = way < 2 ? Placement{{0, 0, 0, 1, 1, 1}, {}} : Placement{{0, 0, 0, 0}, {1, 1}};
    uint32_t failures = 0;
    for (uint32_t allowed = 0;; ++allowed) {
      uint64_t held[2] = {};
      const uint32_t none_fails = ~0u;
      bool opened = false;
      {
        Opening opening = way < 2 ? Opening() : Opening(experts);
        opening.model.bring_from = way < 4 ? kNeverBring : 1;
        SmallDevice first(*opening.device[0], faulty == 0 ? allowed : none_fails, held[0]);
        SmallDevice second(*opening.device[1], faulty == 1 ? allowed : none_fails, held[1]);
        opening.wrap(0, &first), opening.wrap(1, &second);
        REQUIRE(opening.describe().ok());
        REQUIRE(place_on(opening.devices, placement, &opening.model).ok());
        const uint64_t free[] = {uint64_t(1) << 30, uint64_t(1) << 30};
        std::unique_ptr<Executor> executor;
        Status status = load_model(&opening.model, {});
        if (status.ok()) status = Executor::open(opening.model, {.context = 256}, free, &executor);
        opened = status.ok();
        if (!opened) {
          ++failures;
          INFO(error_text());
          CHECK(status.code == Code::Memory);
          CHECK(told(faulty ? "device second: " : "device first: "));
          CHECK(told("fails"));
        }
        executor.reset();
        opening.close();
        CHECK(held[0] == 0);
        CHECK(held[1] == 0);
      }
      if (opened) break;
    }
    CHECK(failures > 5);
  }
}

TEST_CASE("devices: a submission that fails names its device, and the session goes on", "[engine][devices]") {
  const TinyModel tiny = make_tiny(four_layers());
  const auto tokens = first_tokens(70), more = first_tokens(3);
  std::vector<float> want;
  for (const bool second : {false, true}) {
    Submissions submissions;
    const auto wrap = [&](Device& device) -> std::unique_ptr<Device> {
      return std::make_unique<FaultyDevice>(device, false, submissions);
    };
    EngineOptions options;
    options.split = "middle";
    (second ? options.wrap_second : options.wrap) = wrap;
    Engine engine;
    open_engine(tiny.file, options, &engine);
    std::unique_ptr<Session> session;
    REQUIRE(Session::open(shared(engine), &session).ok());
    const float* logits = nullptr;
    REQUIRE(session->eval(tokens, OutputRows::Last, &logits).ok());
    // The first device is waited for, and the last one is submitted to.
    (second ? submissions.fail_at : submissions.fail_wait_at) =
        1 + (second ? submissions.count : submissions.waits);
    CHECK(session->eval(more, OutputRows::Last, &logits).code == Code::Memory);
    INFO(error_text());
    CHECK(told(second ? "device second: " : "device first: "));
    CHECK(session->position() == tokens.size());
    REQUIRE(session->eval(more, OutputRows::Last, &logits).ok());
    const std::vector<float> got(logits, logits + tiny.shape.vocab);
    if (want.empty()) {
      options = {};
      options.split = "";
      Engine whole;
      open_engine(tiny.file, options, &whole);
      std::unique_ptr<Session> alone;
      REQUIRE(Session::open(shared(whole), &alone).ok());
      REQUIRE(alone->eval(tokens, OutputRows::None, nullptr).ok());
      REQUIRE(alone->eval(more, OutputRows::Last, &logits).ok());
      want.assign(logits, logits + tiny.shape.vocab);
    }
    check_same(got, want);
  }
}

TEST_CASE("devices: a state of one placement goes on in another", "[engine][devices]") {
  const auto tokens = first_tokens(150), more = first_tokens(5);
  const auto save = [](Session& session) {
    std::string bytes;
    const auto write = [](void* to, const void* from, size_t count) {
      static_cast<std::string*>(to)->append(static_cast<const char*>(from), count);
      return 0;
    };
    REQUIRE(session.save(write, &bytes).ok());
    return bytes;
  };
  for (const bool has_experts : {false, true}) {
    const std::string file = has_experts ? file_with_experts() : make_tiny(four_layers()).file;
    std::string first;
    std::vector<float> want;
    for (const char* split : {"", "first", "turns", "output", "experts", "mixed", "brought"}) {
      if (!has_experts && !strcmp(split, "experts")) break;
      INFO("split: " << split);
      EngineOptions options;
      options.split = split;
      options.executor.context = 512;  // for both sessions
      Engine engine;
      open_engine(file, options, &engine);
      std::unique_ptr<Session> session, restored;
      REQUIRE(Session::open(shared(engine), &session).ok());
      REQUIRE(session->eval(tokens, OutputRows::None, nullptr).ok());
      const std::string bytes = save(*session);
      if (first.empty()) first = bytes;
      if (on_cpu())
        CHECK(bytes == first);
      else
        CHECK(bytes.size() == first.size());
      Source source;
      REQUIRE(source.open_memory(first.data(), first.size()).ok());
      REQUIRE(Session::open(shared(engine), &restored).ok());
      REQUIRE(restored->restore(source).ok());
      const float* logits = nullptr;
      REQUIRE(restored->eval(more, OutputRows::Last, &logits).ok());
      const std::vector<float> got(logits, logits + engine.model->shape.vocab);
      if (want.empty()) want = got;
      check_same(got, want);
    }
  }
}

TEST_CASE("devices: one that is lost while a model is opened is named, and all memory comes back",
          "[engine][devices]") {
  const std::string experts = file_with_experts();
  for (const uint32_t faulty : {0, 1}) {
    uint32_t failures = 0;
    for (uint64_t at = 0;; ++at) {
      INFO((faulty ? "second" : "first") << ", after " << at << " waits");
      uint64_t held[2] = {};
      const uint32_t none_fails = ~0u;
      bool opened = false;
      {
        Opening opening(experts);
        opening.model.bring_from = 1;
        Submissions submissions;
        SmallDevice first(*opening.device[0], none_fails, held[0]);
        SmallDevice second(*opening.device[1], none_fails, held[1]);
        FaultyDevice lost(faulty ? second : first, false, submissions);
        opening.wrap(0, faulty ? static_cast<Device*>(&first) : &lost);
        opening.wrap(1, faulty ? static_cast<Device*>(&lost) : &second);
        REQUIRE(opening.describe().ok());
        REQUIRE(place_on(opening.devices, {{0, 0, 0, 0}, {1, 1}}, &opening.model).ok());
        submissions.code = Code::Device;
        submissions.fail_wait_at = submissions.waits + at + 1;
        const uint64_t free[] = {uint64_t(1) << 30, uint64_t(1) << 30};
        std::unique_ptr<Executor> executor;
        Status status = load_model(&opening.model, {});
        if (status.ok()) status = Executor::open(opening.model, {.context = 256}, free, &executor);
        opened = status.ok();
        if (!opened) {
          ++failures;
          INFO(error_text());
          CHECK(status.code == Code::Device);
          CHECK(told(faulty ? "device second: " : "device first: "));
        }
        executor.reset();
        opening.close();
        CHECK(held[0] == 0);
        CHECK(held[1] == 0);
      }
      if (opened) break;
    }
    CHECK(failures > 0);
  }
}
