// Barriers of real plans: how many there are, and that each one is needed.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "support/test_device.h"
#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;

namespace {

// One step's plan on the checked device, with buffers of its own.
struct Planned {
  Engine engine;
  std::unique_ptr<KernelSet> kernels;
  std::unique_ptr<Stream> stream;
  DeviceMemory step, rope, log, drawn, counters, readback, arena, cache, upload;
  StepBuffers buffers;
  std::unique_ptr<GretaGraph> graph;

  ~Planned() {
    graph.reset();
    stream.reset();
    kernels.reset();
  }
  void require(Status status) {
    INFO(error_text());
    REQUIRE(status.ok());
  }
  void open(const std::string& file, const StepKey& key, uint32_t tokens) {
    EngineOptions options;
    options.checked = true;
    open_engine(file, options, &engine);
    Device& device = *engine.device;
    const Shape& s = engine.model->shape;
    Stream* opened = nullptr;
    require(device.create_stream(&opened));
    stream.reset(opened);
    kernels = std::make_unique<KernelSet>(*engine.kernels);
    const LayerShape& layer = s.attending();
    const uint32_t page = uint32_t(layer.kv_heads * kPageTokens * layer.key_width * sizeof(float));
    require(step.allocate(device, sizeof(StepState) + 16, Memory::Device));
    require(upload.allocate(device, sizeof(StepState) + 16, Memory::Upload));
    require(rope.allocate(device, 64 * layer.rope_width * sizeof(float), Memory::Device));
    require(log.allocate(device, kPageTokens * sizeof(uint32_t), Memory::Device));
    require(drawn.allocate(device, kMaxStepSequences * kDrawnPositions * sizeof(uint32_t), Memory::Device));
    require(counters.allocate(device, kCounterCount * sizeof(uint32_t), Memory::Device));
    require(readback.allocate(device, 64 * s.vocab * sizeof(float), Memory::Readback));
    require(cache.allocate(device, uint64_t(page) * 2 * s.layers, Memory::Device));
    require(stream->fill(rope.all(), 0));
    require(stream->fill(log.all(), 0));
    require(stream->fill(counters.all(), 0));
    require(stream->wait());
    buffers.step = step.all();
    buffers.rope[0] = rope.all();
    buffers.token_log = log.all();
    buffers.drawn = drawn.all();
    buffers.counters = counters.all();
    buffers.readback = readback.all();
    for (uint32_t l = 0; l < s.layers; ++l)
      buffers.cache.push_back({cache.slice(uint64_t(page) * 2 * l, page),
                               cache.slice(uint64_t(page) * (2 * l + 1), page), page, page});

    memset(upload.buffer().mapped, 0, size_t(upload.all().bytes));  // the page table behind the state too
    StepState& state = *static_cast<StepState*>(upload.buffer().mapped);
    state.token_count = tokens;
    state.output_count = 1;
    state.sequence_capacity = state.page_capacity = 1;
    for (uint32_t t = 0; t < tokens; ++t) state.row[t] = {t + 3, t, 0, t + 1 == tokens ? 0 : kNoOutput};
    state.output_row[0] = tokens - 1;
    graph = std::make_unique<GretaGraph>(engine.model->devices[0].filter);
    require(build_step(*engine.model->arch, s, engine.model->weights(), buffers, key, graph.get()));
    require(arena.allocate(device, graph->arena_bytes(), Memory::Device));
    require(graph->bind(*kernels, arena.all()));
    require(kernels->compile());
  }
  Status run() {
    GRETA_TRY(stream->copy(step.all(), upload.all()));
    GRETA_TRY(graph->run(*stream));
    return stream->wait();
  }
};

}  // namespace

TEST_CASE("decode has five barriers a layer", "[graph]") {
  if (!on_cpu()) SKIP("counted of the CPU's kernels; those of a GPU are counted in rounding_test.cpp");
  for (const uint32_t layers : {1u, 2u, 5u}) {
    const auto tiny = make_tiny({.layers = layers});
    Planned planned;
    planned.open(tiny.file, {1, 1, 1, false}, 1);
    // Before embed, and between the last layer, the head and the copy of its logits.
    CHECK(planned.graph->barriers() == 5 * layers + 3);
    uint32_t stage = 0;
    for (const GretaGraph::Command& command : planned.graph->commands()) {
      stage += command.barrier_before && &command != planned.graph->commands().data();
      CHECK(command.stage == stage);
    }
  }
}

TEST_CASE("the barrier that is removed is the one that was named", "[graph]") {
  const auto tiny = make_tiny({.layers = 1});
  Planned planned;
  planned.open(tiny.file, {1, 1, 1, false}, 1);
  const auto places = [&] {
    std::vector<size_t> at;
    for (size_t i = 0; i < planned.graph->commands().size(); ++i)
      if (planned.graph->commands()[i].barrier_before) at.push_back(i);
    return at;
  };
  std::vector<size_t> left = places();
  planned.graph->remove_barrier(3);
  left.erase(left.begin() + 3);
  CHECK(places() == left);
}

TEST_CASE("a plan with any one barrier removed is reported", "[graph]") {
  const auto tiny = make_tiny({});
  for (const StepKey key : {StepKey{1, 1, 1, false}, StepKey{1, 1, 0, true}, StepKey{16, 1, 1, false}}) {
    const uint32_t tokens = key.tokens == 1 ? 1 : 11;
    uint32_t barriers = 0;
    {
      Planned whole;
      whole.open(tiny.file, key, tokens);
      INFO(error_text());
      REQUIRE(whole.run().ok());
      REQUIRE(whole.run().ok());
      barriers = whole.graph->barriers();
    }
    REQUIRE(barriers > 10);
    for (uint32_t i = 0; i < barriers; ++i) {
      Planned planned;
      planned.open(tiny.file, key, tokens);
      planned.graph->remove_barrier(i);
      INFO("bucket " << key.tokens << ", without barrier " << i << " of " << barriers);
      const Status status = planned.run();
      REQUIRE(status.code == Code::Device);
      CHECK_THAT(error_text(), Catch::Matchers::ContainsSubstring("barrier"));
    }
  }
}

TEST_CASE("a captured plan replays what it recorded, and says how much it needs", "[graph]") {
  const auto tiny = make_tiny({});
  Planned planned;
  planned.open(tiny.file, {1, 1, 1, false}, 1);
  REQUIRE(planned.run().ok());
  const uint32_t vocab = tiny.shape.vocab;
  const float* logits = static_cast<const float*>(planned.readback.buffer().mapped);
  const std::vector<float> first(logits, logits + vocab);
  REQUIRE(planned.graph->capture(*planned.stream, *planned.engine.device).ok());
  for (int i = 0; i < 3; ++i) {
    REQUIRE(planned.run().ok());
    CHECK(std::vector<float>(logits, logits + vocab) == first);
  }
  GretaGraph again(planned.engine.model->devices[0].filter);
  REQUIRE(build_step(*planned.engine.model->arch, planned.engine.model->shape,
                     planned.engine.model->weights(), planned.buffers, {1, 1, 1, false}, &again)
              .ok());
  CHECK(again.bind(*planned.kernels, planned.arena.slice(0, again.arena_bytes() - 1)).code == Code::Memory);
}
