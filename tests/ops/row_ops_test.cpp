// The ops that work value by value or row by row: norm, gate, add, softcap, combine.
#include "support/row_ops.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("norm: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(1);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {1u, 7u, 64u, 288u, 4097u})
      for (const uint32_t heads : {1u, 3u}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        const auto x = with_outliers(size_t(live.tokens) * heads * width, random);
        const auto gain = gaussians(width, random);
        Call call = row_call(Op::Norm, rig.put_padded(x, live.bucket * heads * width),
                             rig.room(uint64_t(live.bucket) * heads * width * 4), steps.put(rig));
        call.weight = put_vector(rig, gain);
        call.width = width;
        call.heads = heads;
        call.epsilon = 1e-5f;
        check_rows(rig, call, live.bucket, reference::norm(to_values(x), to_values(gain), call.epsilon),
                   1e-12);
        if (live.bucket == 8) check_repeats(rig, call, live.bucket);
        rig.reset();
      }
  rig.require_all_run(Op::Norm);
}

TEST_CASE("norm: takes the beginning of wider rows and leaves the rest", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(7);
  const uint32_t width = 40, stride = 56, tokens = 7;
  StepRows steps;
  steps.add_tokens(tokens);
  auto x = gaussians(size_t(tokens) * stride, random);
  const auto gain = gaussians(width, random);
  Call call = row_call(Op::Norm, {}, {}, steps.put(rig));
  call.weight = put_vector(rig, gain);
  call.width = width;
  call.x_stride = call.y_stride = stride;
  call.epsilon = 1e-5f;
  Values expected = to_values(x);
  for (uint32_t t = 0; t < tokens; ++t) {
    const auto row = expected.begin() + t * stride;
    const Values y = reference::norm({row, row + width}, to_values(gain), call.epsilon);
    std::copy(y.begin(), y.end(), row);
  }
  for (const KernelRow* row : rig.rows({&call, 1}, 8)) {
    call.slot[kX] = call.slot[kY] = rig.put_padded(x, 8 * stride);
    rig.run({&call, 1}, *row, 8);
    auto y = rig.get<float>(call.slot[kY]);
    y.resize(x.size());
    require_close(y, expected, 1e-12, row->name);
  }
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
  Call call = row_call(Op::Norm, rig.put_padded(x, 16 * width), rig.room(8 * width * 4), steps.put(rig));
  call.weight = put_vector(rig, gain);
  call.width = width;
  call.epsilon = 1e-6f;
  call.rows_of = kRowsGather;
  Values gathered = to_values({x.begin() + 2 * width, x.begin() + 3 * width});
  gathered.resize(2 * width);  // the row of zeros
  check_rows(rig, call, 8, reference::norm(gathered, to_values(gain), call.epsilon), 1e-12);

  call.rows_of = kRowsOutputs;
  call.slot[kX] = call.slot[kY] = rig.put_padded({x.begin(), x.begin() + 2 * width}, 8 * width);
  rig.run_plain(call, 8);
  const Values two = to_values({x.begin(), x.begin() + 2 * width});
  std::vector<float> y = rig.get<float>(call.slot[kY]);
  y.resize(2 * width);
  require_close(y, reference::norm(two, to_values(gain), call.epsilon), 1e-12, "in place");
}

TEST_CASE("gate: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(3);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {1u, 33u, 768u})
      for (const uint32_t activation : {uint32_t(kActivationSilu), uint32_t(kActivationGelu), uint32_t(kActivationClamped)}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        const size_t count = size_t(live.tokens) * width;
        auto gate = gaussians(count, random, 4);
        gate[0] = 80;  // where exponentials end
        if (count > 2) gate[1] = -200, gate[2] = 0;
        const auto up = gaussians(count, random, 5);
        Call call = row_call(Op::Gate, rig.put_padded(gate, live.bucket * width),
                             rig.room(uint64_t(live.bucket) * width * 4), steps.put(rig));
        call.slot[kX2] = rig.put_padded(up, live.bucket * width);
        call.width = width;
        call.activation = activation;
        const auto kind = reference::Activation(activation);
        check_rows(rig, call, live.bucket, reference::gate(to_values(gate), to_values(up), kind), 1e-12);
        if (live.bucket == 8) check_repeats(rig, call, live.bucket);
        rig.reset();
      }
  rig.require_all_run(Op::Gate);
}

TEST_CASE("gate: small values keep their relative precision", "[ops]") {
  OpRig rig;
  StepRows steps;
  steps.add_tokens(1);
  std::vector<float> gate, up;
  for (int i = -1000; i <= 1000; ++i) gate.push_back(float(i) * 0.01f), up.push_back(1);
  for (const uint32_t activation : {uint32_t(kActivationSilu), uint32_t(kActivationGelu)}) {
    Call call = row_call(Op::Gate, rig.put(gate), rig.room(gate.size() * 4), steps.put(rig));
    call.slot[kX2] = rig.put(up);
    call.width = uint32_t(gate.size());
    call.activation = activation;
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
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(4);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {1u, 33u, 768u})
      for (const float scale : {1.f, -0.37f}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        const auto a = with_outliers(size_t(live.tokens) * width, random), b = gaussians(a.size(), random);
        Call call = row_call(Op::Add, rig.put_padded(a, live.bucket * width),
                             rig.room(uint64_t(live.bucket) * width * 4), steps.put(rig));
        call.slot[kX2] = rig.put_padded(b, live.bucket * width);
        call.width = width;
        call.scale = scale;
        check_rows(rig, call, live.bucket, reference::add(to_values(a), to_values(b), scale), 1e-13);
        if (live.bucket == 8) check_repeats(rig, call, live.bucket);
        rig.reset();
      }
  rig.require_all_run(Op::Add);
}

TEST_CASE("softcap: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(5);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {1u, 33u, 4096u}) {
      StepRows steps;
      for (uint32_t t = 0; t < live.tokens; ++t) steps.add(t, 0, t, true);
      auto x = gaussians(size_t(live.tokens) * width, random, 40);
      for (size_t i = 0; i < x.size(); i += 5) x[i] *= 1e-4f;  // where tanh cancels
      Call call = row_call(Op::Softcap, rig.put_padded(x, live.bucket * width),
                           rig.room(uint64_t(live.bucket) * width * 4), steps.put(rig));
      call.width = width;
      call.softcap = width == 33 ? 0.f : 30.f;
      call.scale = width == 1 ? 1.f : 0.125f;
      call.rows_of = kRowsOutputs;
      check_rows(rig, call, live.bucket, reference::softcap(to_values(x), double(call.softcap), double(call.scale)),
                 1e-12);
      if (live.bucket == 8) check_repeats(rig, call, live.bucket);
      rig.reset();
    }
  rig.require_all_run(Op::Softcap);
}

TEST_CASE("combine: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(6);
  for (const Live& live : live_rows(rig))
    for (const uint32_t width : {1u, 33u, 768u})
      for (const uint32_t used : {1u, 2u, 8u}) {
        StepRows steps;
        steps.add_tokens(live.tokens);
        const auto x = gaussians(size_t(live.tokens) * used * width, random);
        const auto weights = gaussians(size_t(live.tokens) * used, random);
        Call call = row_call(Op::Combine, rig.put_padded(x, live.bucket * used * width),
                             rig.room(uint64_t(live.bucket) * width * 4), steps.put(rig));
        call.slot[kX2] = rig.put_padded(weights, live.bucket * used);
        call.width = width;
        call.used = used;
        check_rows(rig, call, live.bucket, reference::combine(to_values(x), to_values(weights), width, used),
                   1e-11);
        if (live.bucket == 8) check_repeats(rig, call, live.bucket);
        rig.reset();
      }
  rig.require_all_run(Op::Combine);
}

}  // namespace greta::test
