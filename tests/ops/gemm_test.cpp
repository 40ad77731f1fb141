// General products: types, turned operands, strides and batches.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "selftest/checks/checks.h"
#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("gemm: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_gemm(rig);
}

TEST_CASE("gemm: what does not fit is refused by numbers", "[ops]") {
  const KernelRow* plain = nullptr;
  for (const KernelRow& row : rows_of("cpu"))
    if (row.ops[0] == Op::Gemm && !row.rank) plain = &row;
  REQUIRE(plain);
  const Call::Gemm right = {.m = 4,
                            .n = 5,
                            .k = 6,
                            .batch = 2,
                            .a_stride = 6,
                            .b_stride = 5,
                            .y_stride = 5,
                            .a_batch = 24,
                            .b_batch = 0,
                            .y_batch = 20};
  const auto fits = [&](auto&& change) {
    Call call = CallMaker{}.gemm({}, {}, {}, right);
    change(call.gemm);
    Reason why;
    return op_info(Op::Gemm).fits({&call, 1}, *plain, why);
  };
  CHECK(fits([](Call::Gemm&) {}));
  CHECK(!fits([](Call::Gemm& g) { g.k = 0; }));
  CHECK(!fits([](Call::Gemm& g) { g.a_stride = 5; }));
  CHECK(!fits([](Call::Gemm& g) { g.b_stride = 4; }));
  CHECK(!fits([](Call::Gemm& g) { g.y_stride = 4; }));
  CHECK(!fits([](Call::Gemm& g) { g.y_batch = 19; }));
  CHECK(!fits([](Call::Gemm& g) { g.y_type = kGemmF16; }));
  CHECK(!fits([](Call::Gemm& g) { g.type = kGemmTypes; }));
  CHECK(!fits([](Call::Gemm& g) { g.batch = 70000; }));
}

}  // namespace greta::test
