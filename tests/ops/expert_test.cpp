// route and matmul_expert.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>

#include "support/row_ops.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("route: every row chooses the experts of float64", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(1);
  struct Shape {
    uint32_t experts, used;
  };
  for (const Live& live : live_rows(rig))
    for (const Shape& shape : {Shape{1, 1}, Shape{8, 2}, Shape{60, 60}, Shape{512, 10}})
      for (const uint32_t normalise : {0u, 1u}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        auto logits = gaussians(size_t(live.tokens) * shape.experts, random, 3);
        if (shape.experts > 4) logits[4] = logits[1];  // a tie: the lower index first
        Call call = row_call(Op::Route, rig.put_padded(logits, live.bucket * shape.experts),
                             rig.room(uint64_t(live.bucket) * shape.used * 4), steps.put(rig));
        call.slot[kY2] = rig.room(uint64_t(live.bucket) * shape.used * 4);
        call.experts = shape.experts;
        call.used = shape.used;
        call.normalise = normalise;
        const auto expected = reference::route(to_values(logits), shape.experts, shape.used, normalise);
        for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
          rig.poison(call.slot[kY]);
          rig.poison(call.slot[kY2]);
          rig.run({&call, 1}, *row, live.bucket);
          Ids ids = rig.get<uint32_t>(call.slot[kY]);
          ids.resize(expected.ids.size());
          REQUIRE(ids == expected.ids);
          require_close(rig.get<float>(call.slot[kY2]), expected.weights, 1e-12, row->name);
        }
        rig.reset();
      }
  rig.require_all_run(Op::Route);
}

TEST_CASE("route: NaN among the logits still gives experts that exist", "[ops]") {
  OpRig rig;
  StepRows steps;
  steps.add_tokens(2);
  Call call = row_call(Op::Route, rig.put(std::vector<float>{NAN, 1, NAN, 0, NAN, NAN, NAN, NAN}),
                       rig.room(2 * 3 * 4), steps.put(rig));
  call.slot[kY2] = rig.room(2 * 3 * 4);
  call.experts = 4;
  call.used = 3;
  for (const KernelRow* row : rig.rows({&call, 1}, 2)) {
    rig.run({&call, 1}, *row, 2);
    for (const uint32_t id : rig.get<uint32_t>(call.slot[kY])) REQUIRE(id < 4);
  }
}

TEST_CASE("matmul_expert: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(2);
  for (const Stored& stored : stored_types(rig, Op::MatmulExpert))
    for (const Live& live : live_rows(rig, 4))
      for (const uint32_t n : {1u, 31u, 64u})
        for (const bool shared_x : {true, false}) {
          const uint32_t experts = 5, used = 3, depth = quant_info(stored.type).block == 1 ? 70 : 256;
          const uint32_t x_slots = shared_x ? 1 : used;
          StepRows steps;
          steps.add_tokens(live.tokens);
          const Matrix matrix = random_matrix(stored.type, n, depth, experts, Scales::Plain, random);
          const auto x = with_outliers(size_t(live.tokens) * x_slots * depth, random);
          Ids ids;
          for (uint32_t i = 0; i < live.tokens * used; ++i) ids.push_back(uint32_t(random() % experts));
          const Values expected =
              reference::matmul_expert(matrix.values, to_values(x), ids, {n, depth, used, x_slots});
          Call call = row_call(Op::MatmulExpert, rig.put_padded(x, live.bucket * x_slots * depth),
                               rig.room(uint64_t(live.bucket) * used * n * 4), steps.put(rig));
          ids.resize(size_t(live.bucket) * used, ~0u);
          call.slot[kX2] = rig.put(ids);
          call.weight = put_matrix(rig, matrix, stored.layout);
          call.experts = experts;
          call.used = used;
          call.x_slots = x_slots;
          check_rows(rig, call, live.bucket, expected, n == 1 ? 1e-10 : 1e-11);
          rig.reset();
        }
  rig.require_all_run(Op::MatmulExpert);
}

}  // namespace greta::test
