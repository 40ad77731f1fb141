// Where a plan is split into submissions.
#include <catch2/catch_test_macros.hpp>

#include "engine/executor/executor.h"

using namespace greta;

// How often a plan of 12 products of 1024 x 1024 weights is split for a device of so many units.
static uint32_t splits(uint32_t units, uint32_t tokens) {
  DeviceInfo info{.backend = "cpu", .unit_count = units};
  Buffer memory;
  memory.bytes = uint64_t(1) << 40;
  GretaGraph graph({&info, true});
  const Tensor weight = {QuantType::f32, Layout::Gguf, 1024, 1024, 1, {&memory, 0, 4 << 20}};
  for (uint64_t i = 0; i < 12; ++i) {
    const Slice x = {&memory, (i + 1) << 30, uint64_t(tokens) << 12},
                y = {&memory, (i + 2) << 30, uint64_t(tokens) << 12};
    const Call call = CallMaker{}.matmul(weight, x, y);
    REQUIRE(graph.add({&call, 1}, tokens).ok());
  }
  REQUIRE(graph.finish().ok());
  uint32_t count = 0;
  for (const GretaGraph::Command& command : graph.commands()) count += command.split_before;
  return count;
}

TEST_CASE("a plan is split by what a compute unit can do in a tenth of a second", "[graph]") {
  // 2 * 1024 * 1024 * 512 operations each, of 5e9 for each unit: four at once.
  CHECK(splits(1, 512) == 2);
  CHECK(splits(2, 512) == 1);
  CHECK(splits(3, 512) == 0);
  CHECK(splits(1, 1) == 0);
}

TEST_CASE("a step has no more tokens than its largest launch has time for", "[graph]") {
  constexpr uint64_t kAll = 8'030'000'000, kLargest = 14336 * 4096;  // of an 8B model
  const auto limit = [&](uint32_t units, bool cpu) {
    return step_limit({.backend = "vulkan", .unit_count = units, .cpu_type = cpu}, kAll, kLargest);
  };
  CHECK(limit(1, false) == 42);
  CHECK(limit(2, false) == 85);
  CHECK(limit(32, false) == 512);
  CHECK(step_limit({.backend = "vulkan", .unit_count = 1}, kAll, 100 * kLargest) == 32);
  CHECK(limit(2, true) == 32);
}
