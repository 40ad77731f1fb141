// route and matmul_expert.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>

#include "selftest/checks/checks.h"
#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("route: every row chooses the experts of float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_route(rig);
  check_routers(rig);
}

TEST_CASE("route: NaN among the logits still gives experts that exist", "[ops]") {
  OpRig rig;
  StepRows steps;
  steps.add_tokens(2);
  const Slice logits = rig.put(std::vector<float>{NAN, 1, NAN, 0, NAN, NAN, NAN, NAN});
  const Slice ids = rig.room(2 * 3 * 4), weights = rig.room(2 * 3 * 4);
  const Call call = CallMaker{steps.put(rig)}.route(logits, ids, weights, {4, 3}, {});
  for (const KernelRow* row : rig.rows({&call, 1}, 2)) {
    rig.run({&call, 1}, *row, 2);
    for (const uint32_t id : rig.get<uint32_t>(call.slot[kY])) REQUIRE(id < 4);
  }
}

TEST_CASE("matmul_expert: without ids slot j takes expert j", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_matmul_heads(rig);
}

TEST_CASE("matmul_expert: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_matmul_expert(rig);
  check_expert_sequences(rig);
}

TEST_CASE("matmul_expert: the bits do not depend on the number of threads", "[ops]") {
  const uint32_t experts = 7, used = 3, n = 90, depth = 512, tokens = 29;
  OpRig one("cpu", ~0u, 1), five("cpu", ~0u, 5);
  for (const QuantType type : {QuantType::q4_k, QuantType::q5_0, QuantType::f16}) {
    std::vector<uint32_t> bits[2];
    for (OpRig* rig : {&one, &five}) {
      Random random(4);
      StepRows steps;
      steps.add_tokens(tokens);
      Ids ids;
      for (uint32_t i = 0; i < tokens * used; ++i) ids.push_back(uint32_t(random() % experts));
      const Slice x = rig->put(gaussians(size_t(tokens) * depth, random)), ids_slice = rig->put(ids),
                  y = rig->room(uint64_t(tokens) * used * n * 4);
      const CallMaker make{steps.put(*rig)};
      const Matrix matrix = random_matrix(type, n, depth, experts, Scales::Plain, random);
      const Tensor weight = put_matrix(*rig, matrix, Layout::Gguf);
      const Call call = make.matmul_each(weight, x, ids_slice, y, used, 1);
      for (const KernelRow* row : rig->rows({&call, 1}, tokens)) {
        rig->poison(call.slot[kY]);
        rig->run({&call, 1}, *row, tokens);
        const auto words = rig->get<uint32_t>(y);
        bits[rig == &five].insert(bits[rig == &five].end(), words.begin(), words.end());
      }
      rig->reset();
    }
    REQUIRE(!bits[0].empty());
    REQUIRE(bits[0] == bits[1]);
  }
}

}  // namespace greta::test
