// An executor's arena is as large as its largest step asks, whoever plans the steps: those of few layers one
// thread, those of many several.
#include <catch2/catch_test_macros.hpp>

#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;

TEST_CASE("arena: layers reuse it, so that few need as much as many", "[engine]") {
  if (*test_split()) SKIP("pieces lie on two devices");
  uint64_t bytes[2] = {};
  for (const uint32_t layers : {2u, 16u}) {
    const TinyModel tiny = make_tiny({.layers = layers});
    Engine engine;
    open_engine(tiny.file, {}, &engine);
    const ExecutorPlan& plan = engine.executor->plan();
    bytes[layers > 2] = plan.on[0].arena;
    // Planned once more, with the same result.
    ExecutorOptions options{.context = plan.context, .key_type = 0, .value_type = 0};
    ExecutorPlan again;
    REQUIRE(Executor::plan(*engine.model, &options, ~uint64_t(0), &again).ok());
    CHECK(again.on[0].arena == plan.on[0].arena);
  }
  CHECK(bytes[0] > 0);
  CHECK(bytes[0] == bytes[1]);
}
