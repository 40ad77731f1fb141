// Norms, rotation and operations on single values of greta_compute.h, against float64, with strides, in
// place, and over more rows than a launch takes.
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::vector<uint64_t> kWidths = {1, 7, 64, 130};
const std::vector<uint64_t> kRows = {1, 3, 513};

}  // namespace

TEST_CASE("compute rms_norm: rows with and without gaps, heads, in place", "[compute]") {
  for (const auto& rig : op_rigs())
    for (const uint64_t width : kWidths)
      for (const uint64_t rows : kRows) {
        Random random(width * 1000 + rows);
        INFO(rows << " rows of " << width);
        const std::vector<float> x = gaussians(rows * width, random), gain = gaussians(width, random);
        const Values expected = reference::norm(to_values(x), to_values(gain), double(1e-5f));
        auto call = sized<greta_rms_norm_call>();
        call.epsilon = 1e-5f;
        call.gain = rig->tensor({width}, gain);
        call.x = rig->tensor({rows, width}, x);
        call.y = rig->tensor({rows, width});
        GRETA_RUN(*rig, rms_norm, call);
        check_close(rig->get(call.y, rows * width), expected);
        call.y = call.x;
        GRETA_RUN(*rig, rms_norm, call);
        check_close(rig->get(call.y, rows * width), expected);
        const uint64_t from = width + 3, to = width + 9;
        call.x = rig->tensor({rows, width}, spread(x, width, from), {from, 1});
        call.y = rig->tensor({rows, width}, {}, {to, 1});
        GRETA_RUN(*rig, rms_norm, call);
        check_close(gathered(rig->get(call.y, rows * to), width, to), expected);
      }
}

TEST_CASE("compute rms_norm: heads of rows with gaps behind them", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Random random(5);
    const uint64_t rows = 5, heads = 3, width = 16, stride = 64;
    const std::vector<float> x = gaussians(rows * heads * width, random), gain = gaussians(width, random);
    const Values expected = reference::norm(to_values(x), to_values(gain), double(1e-6f));
    auto call = sized<greta_rms_norm_call>();
    call.epsilon = 1e-6f;
    call.gain = rig->tensor({width}, gain);
    call.x = rig->tensor({rows, heads, width}, spread(x, heads * width, stride), {stride, width, 1});
    call.y = rig->tensor({rows, heads, width});
    GRETA_RUN(*rig, rms_norm, call);
    check_close(rig->get(call.y, rows * heads * width), expected);
    std::swap(call.x, call.y);
    call.x = rig->tensor({rows, heads, width}, x);
    call.y = rig->tensor({rows, heads, width}, {}, {stride, width, 1});
    GRETA_RUN(*rig, rms_norm, call);
    check_close(gathered(rig->get(call.y, rows * stride), heads * width, stride), expected);
  }
}

TEST_CASE("compute layer_norm: with and without gain and bias", "[compute]") {
  for (const auto& rig : op_rigs())
    for (const uint64_t width : {uint64_t(2), uint64_t(7), uint64_t(130)})
      for (const uint64_t rows : kRows)
        for (const bool affine : {false, true}) {
          Random random(width * 1000 + rows);
          const std::vector<float> x = gaussians(rows * width, random), gain = gaussians(width, random),
                                   bias = gaussians(width, random);
          const Values expected =
              reference::layer_norm(to_values(x), affine ? to_values(gain) : Values{},
                                    affine ? to_values(bias) : Values{}, width, double(1e-5f));
          auto call = sized<greta_layer_norm_call>();
          call.epsilon = 1e-5f;
          if (affine) call.gain = rig->tensor({width}, gain), call.bias = rig->tensor({width}, bias);
          call.x = rig->tensor({rows, width}, x);
          call.y = rig->tensor({rows, width});
          GRETA_RUN(*rig, layer_norm, call);
          check_close(rig->get(call.y, rows * width), expected);
        }
}

TEST_CASE("compute rope: pairs and halves, a part of a head, any first position", "[compute]") {
  for (const auto& rig : op_rigs())
    for (const bool halves : {false, true})
      for (const uint64_t rows : kRows)
        for (const uint64_t first : {uint64_t(0), uint64_t(29)}) {
          const uint32_t heads = 3, width = 10, rotated = 6;
          Random random(rows + first);
          const uint64_t positions = first + rows;
          const std::vector<float> x = gaussians(rows * heads * width, random),
                                   table = gaussians(positions * rotated, random);
          reference::Ids at(rows);
          for (uint64_t t = 0; t < rows; ++t) at[t] = uint32_t(first + t);
          Values expected =
              reference::rope(to_values(x), at, to_values(table), {heads, width, rotated, halves});
          auto call = sized<greta_rope_call>();
          call.halves = halves;
          call.first_position = first;
          call.table = rig->tensor({positions, rotated / 2, 2}, table);
          call.x = call.y = rig->tensor({rows, heads, width}, x);
          GRETA_RUN(*rig, rope, call);
          check_close(rig->get(call.y, rows * heads * width), expected);
          // Not in place the values behind the rotated ones are not written; heads lie apart.
          const uint64_t stride = 13;
          call.x = rig->tensor({rows, heads, width}, x);
          call.y = rig->tensor({rows, heads, width}, {}, {heads * stride, stride, 1});
          GRETA_RUN(*rig, rope, call);
          Values rotated_only;
          for (size_t i = 0; i < expected.size(); ++i)
            if (i % width < rotated) rotated_only.push_back(expected[i]);
          check_close(gathered(rig->get(call.y, rows * heads * stride), rotated, stride), rotated_only);
        }
}

TEST_CASE("compute add, gate, multiply, softcap: shapes of any rank, in place", "[compute]") {
  for (const auto& rig : op_rigs())
    for (const uint64_t rows : kRows) {
      const uint64_t width = 33, count = 2 * rows * width;
      const std::vector<uint64_t> shape = {2, rows, width};
      Random random(rows);
      const std::vector<float> a = gaussians(count, random), b = gaussians(count, random);
      auto add = sized<greta_add_call>();
      add.scale = 0.5f;
      add.a = rig->tensor(shape, a), add.b = rig->tensor(shape, b), add.y = rig->tensor(shape);
      GRETA_RUN(*rig, add, add);
      check_close(rig->get(add.y, count), reference::add(to_values(a), to_values(b), 0.5));
      add.scale = 0;  // 1
      add.y = add.b;
      GRETA_RUN(*rig, add, add);
      check_close(rig->get(add.y, count), reference::add(to_values(a), to_values(b), 1));
      for (const greta_activation activation :
           {GRETA_ACTIVATION_SILU, GRETA_ACTIVATION_GELU, GRETA_ACTIVATION_CLAMPED}) {
        auto gate = sized<greta_gate_call>();
        gate.activation = activation;
        gate.gate = rig->tensor(shape, a), gate.up = rig->tensor(shape, b), gate.y = rig->tensor(shape);
        const Values expected =
            reference::gate(to_values(a), to_values(b), reference::Activation(activation));
        GRETA_RUN(*rig, gate, gate);
        check_close(rig->get(gate.y, count), expected);
        gate.y = gate.gate;
        GRETA_RUN(*rig, gate, gate);
        check_close(rig->get(gate.y, count), expected);
      }
      for (const greta_factor factor : {GRETA_FACTOR_ITSELF, GRETA_FACTOR_LOGISTIC, GRETA_FACTOR_POSITIVE,
                                        GRETA_FACTOR_GELU, GRETA_FACTOR_GELU_ERF, GRETA_FACTOR_SOFTPLUS}) {
        auto multiply = sized<greta_multiply_call>();
        multiply.factor = factor;
        multiply.x = rig->tensor(shape, a), multiply.by = rig->tensor(shape, b);
        multiply.y = multiply.by;
        GRETA_RUN(*rig, multiply, multiply);
        check_close(rig->get(multiply.y, count),
                    reference::multiply(to_values(a), to_values(b), uint32_t(factor), {}));
        multiply.by = multiply.y = multiply.x;
        GRETA_RUN(*rig, multiply, multiply);
        check_close(rig->get(multiply.y, count),
                    reference::multiply(to_values(a), to_values(a), uint32_t(factor), {}));
      }
      for (const float cap : {0.f, 3.f}) {
        auto softcap = sized<greta_softcap_call>();
        softcap.cap = cap;
        softcap.scale = 0.7f;
        softcap.x = rig->tensor({rows, width}, {a.begin(), a.begin() + long(rows * width)});
        softcap.y = rig->tensor({rows, width}, {}, {width + 5, 1});
        GRETA_RUN(*rig, softcap, softcap);
        const Values x = to_values({a.begin(), a.begin() + long(rows * width)});
        check_close(gathered(rig->get(softcap.y, rows * (width + 5)), width, width + 5),
                    reference::softcap(x, double(cap), double(0.7f)));
        softcap.y = softcap.x;
        GRETA_RUN(*rig, softcap, softcap);
        check_close(rig->get(softcap.y, rows * width), reference::softcap(x, double(cap), double(0.7f)));
      }
    }
}

TEST_CASE("compute ops: calls of a stream see what those before made", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Random random(3);
    const std::vector<float> x = gaussians(20 * 32, random), gain = gaussians(32, random);
    auto norm = sized<greta_rms_norm_call>();
    auto add = sized<greta_add_call>();
    norm.gain = rig->tensor({32}, gain);
    norm.x = add.a = add.y = rig->tensor({20, 32}, x);
    norm.y = add.b = rig->tensor({20, 32});
    Values expected = to_values(x);
    for (int i = 0; i < 10; ++i) {
      rig->ok(greta_rms_norm(rig->compute, rig->stream, &norm, {}, 0));
      rig->ok(greta_add(rig->compute, rig->stream, &add, {}, 0));
      expected = reference::add(expected, reference::norm(expected, to_values(gain), 0), 1);
    }
    rig->wait();
    check_close(rig->get(add.y, 20 * 32), expected);
  }
}
