// The ops that work value by value or row by row: norm, gate, add, softcap, combine.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>

#include "selftest/checks/checks.h"
#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("norm: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_norm(rig);
}

TEST_CASE("norm: takes the beginning of wider rows and leaves the rest", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_norm_strides(rig);
}

TEST_CASE("norm: gathers the rows that have outputs, takes rows of zeros, works in place", "[ops]") {
  OpRig rig;
  Random random(2);
  const uint32_t width = 48;
  StepRows steps;
  for (uint32_t t = 0; t < 9; ++t) steps.add(t, 0, t, t == 2 || t == 8);
  auto x = gaussians(9 * width, random);
  for (uint32_t i = 0; i < width; ++i) x[8 * width + i] = 0;
  const auto gain = gaussians(width, random);
  const Slice from = rig.put_padded(x, 16 * width), y_slice = rig.room(8 * width * 4), step = steps.put(rig);
  Call call = CallMaker{step}.norm(put_vector(rig, gain), from, y_slice, 1e-6f);
  call.rows_of = kRowsGather;
  Values gathered = to_values({x.begin() + 2 * width, x.begin() + 3 * width});
  gathered.resize(2 * width);  // the row of zeros
  check_rows(rig, call, 8, reference::norm(gathered, to_values(gain), call.norm.epsilon), 1e-12);

  call.rows_of = kRowsOutputs;
  call.slot[kX] = call.slot[kY] = rig.put_padded({x.begin(), x.begin() + 2 * width}, 8 * width);
  rig.run_plain(call, 8);
  const Values two = to_values({x.begin(), x.begin() + 2 * width});
  std::vector<float> y = rig.get<float>(call.slot[kY]);
  y.resize(2 * width);
  require_close(y, reference::norm(two, to_values(gain), call.norm.epsilon), 1e-12, "in place");
}

TEST_CASE("gate: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_gate(rig);
}

TEST_CASE("gate: small values keep their relative precision", "[ops]") {
  OpRig rig;
  StepRows steps;
  steps.add_tokens(1);
  std::vector<float> gate, up;
  for (int i = -1000; i <= 1000; ++i) gate.push_back(float(i) * 0.01f), up.push_back(1);
  for (const uint32_t activation : {uint32_t(kActivationSilu), uint32_t(kActivationGelu)}) {
    const Slice gate_slice = rig.put(gate), up_slice = rig.put(up), y_slice = rig.room(gate.size() * 4);
    const CallMaker make{steps.put(rig)};
    const Call call = make.gate(gate_slice, up_slice, y_slice, uint32_t(gate.size()), activation);
    rig.run_plain(call, 1);
    const auto y = rig.get<float>(call.slot[kY]);
    const auto kind = activation ? reference::Activation::Gelu : reference::Activation::Silu;
    const Values expected = reference::gate(to_values(gate), to_values(up), kind);
    for (size_t i = 0; i < y.size(); ++i) {
      // An exponent of up to 90 magnifies the rounding of its argument.
      const double allowed = std::fabs(expected[i]) * 2e-5 + 1e-37;
      INFO("activation " << activation << " of " << gate[i]);
      REQUIRE(std::fabs(y[i] - expected[i]) <= allowed);
    }
  }
}

TEST_CASE("add: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_add(rig);
}

TEST_CASE("layer_norm: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_layer_norm(rig);
}

TEST_CASE("multiply: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_multiply(rig);
}

TEST_CASE("softcap: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_softcap(rig);
}

TEST_CASE("cast: every row gives the nearest values", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_cast(rig);
}

TEST_CASE("softmax: every row agrees with float64, and NaN is not lost", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_softmax(rig);
  check_softmax_of_not_finite(rig);
}

TEST_CASE("sum: every row gives the sums to the bit", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_sum(rig);
}

TEST_CASE("products: every row makes as many as it is asked for", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_products(rig);
}

TEST_CASE("combine: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_combine(rig);
}

}  // namespace greta::test
