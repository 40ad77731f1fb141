// greta_softmax against float64: dimensions that share masks and sinks, gaps, in place, on a step, in a
// graph, and what is refused.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

// What the softmax of a tensor must be. Masks and sinks have its dimensions, or 1.
struct Expected {
  std::vector<uint64_t> shape, mask_shape, sinks_shape;  // empty: absent
  std::vector<float> x, mask, sinks;
  double scale = 1, cap = 0;
  bool logarithm = false;

  // The value of `values`, whose first dimensions are the row's, that belongs to row r.
  size_t place(const std::vector<uint64_t>& of, uint64_t r) const {
    size_t at = 0, step = 1;
    for (size_t d = shape.size() - 1; d-- > 0; r /= shape[d]) {
      if (of[d] != 1) at += r % shape[d] * step;
      step *= of[d];
    }
    return at;
  }
  Values values() const {
    const uint64_t width = shape.back();
    Values scores = reference::softcap(to_values(x), cap, scale), of_rows;
    for (uint64_t r = 0; r < x.size() / width; ++r) {
      for (uint64_t i = 0; i < width && !mask.empty(); ++i)
        scores[r * width + i] += double(mask[place(mask_shape, r) * width + i]);
      if (!sinks.empty()) of_rows.push_back(double(sinks[place(sinks_shape, r)]));
    }
    return reference::softmax(scores, of_rows, width, logarithm);
  }
};

uint64_t product(const std::vector<uint64_t>& shape) {
  uint64_t values = 1;
  for (const uint64_t each : shape) values *= each;
  return values;
}

// Infinities must be where they are expected; they are not compared further.
void check_values(std::vector<float> y, Values expected) {
  REQUIRE(y.size() == expected.size());
  size_t wrong = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    if (!std::isinf(expected[i])) continue;
    wrong += y[i] != -INFINITY;
    y[i] = 0, expected[i] = 0;
  }
  CHECK(wrong == 0);
  check_close(y, expected);
}

}  // namespace

TEST_CASE("compute softmax: masks and sinks that dimensions share, in place and with gaps", "[compute]") {
  using Shape = std::vector<uint64_t>;
  struct Case {
    Shape shape, mask, sinks;
  };
  const Case cases[] = {{{1}, {}, {}},
                        {{3, 7}, {3, 7}, {3}},
                        {{513, 33}, {1, 33}, {1}},
                        {{5, 3, 64}, {5, 1, 64}, {1, 3}},
                        {{4, 300, 20}, {1, 300, 20}, {4, 1}},
                        {{2, 3, 5, 11}, {1, 3, 1, 11}, {2, 3, 1}},
                        {{2, 1, 5, 9001}, {2, 1, 1, 9001}, {1, 1, 5}}};
  for (const auto& rig : op_rigs())
    for (const Case& each : cases)
      for (const bool logarithm : {false, true}) {
        Random random(each.shape[0]);
        Expected of = {each.shape, each.mask, each.sinks, gaussians(product(each.shape), random, 3), {}, {}};
        of.scale = double(0.7f), of.cap = logarithm ? 0 : 4, of.logarithm = logarithm;
        if (!each.mask.empty()) of.mask = gaussians(product(each.mask), random);
        if (!each.sinks.empty()) of.sinks = gaussians(product(each.sinks), random);
        for (size_t i = 0; i < of.mask.size(); i += 3) of.mask[i] = -INFINITY;
        auto call = sized<greta_softmax_call>();
        call.logarithm = logarithm, call.scale = 0.7f, call.cap = float(of.cap);
        call.x = rig->tensor(each.shape, of.x), call.y = rig->tensor(each.shape);
        if (!each.mask.empty()) call.mask = rig->tensor(each.mask, of.mask);
        if (!each.sinks.empty()) call.sinks = rig->tensor(each.sinks, of.sinks);
        GRETA_RUN(*rig, softmax, call);
        check_values(rig->get(call.y, of.x.size()), of.values());
        call.y = call.x;
        GRETA_RUN(*rig, softmax, call);
        check_values(rig->get(call.y, of.x.size()), of.values());
        if (each.shape.size() != 2) continue;
        const uint64_t width = each.shape[1], from = width + 3, to = width + 8;
        call.x = rig->tensor(each.shape, spread(of.x, width, from), {from, 1});
        call.y = rig->tensor(each.shape, {}, {to, 1});
        GRETA_RUN(*rig, softmax, call);
        check_values(gathered(rig->get(call.y, each.shape[0] * to), width, to), of.values());
      }
}

TEST_CASE("compute softmax: a row that is masked away is 0, and its logarithm -infinity", "[compute]") {
  for (const auto& rig : op_rigs())
    for (const bool logarithm : {false, true}) {
      auto call = sized<greta_softmax_call>();
      call.logarithm = logarithm;
      call.x = rig->tensor({2, 5}, std::vector<float>(10, 1)), call.y = rig->tensor({2, 5});
      std::vector<float> mask(10, 0);
      std::fill_n(mask.begin(), 5, -INFINITY);
      call.mask = rig->tensor({2, 5}, mask);
      GRETA_RUN(*rig, softmax, call);
      const std::vector<float> y = rig->get(call.y, 10);
      for (size_t i = 0; i < 5; ++i) {
        CHECK(y[i] == (logarithm ? -INFINITY : 0.0f));
        CHECK(std::fabs(y[5 + i] - (logarithm ? std::log(0.2f) : 0.2f)) < 1e-6f);
      }
    }
}

TEST_CASE("compute softmax: in a graph, and over the live rows of a step", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Random random(9);
    const uint64_t rows = 600, heads = 3, width = 12;
    Expected of = {{rows, heads, width}, {}, {1, heads}, gaussians(rows * heads * width, random), {}, {}};
    of.sinks = gaussians(heads, random);
    auto call = sized<greta_softmax_call>();
    call.x = rig->tensor(of.shape, of.x), call.y = rig->tensor(of.shape);
    call.sinks = rig->tensor(of.sinks_shape, of.sinks);
    greta_graph graph = {};
    rig->ok(greta_graph_begin(rig->compute, rig->stream));
    rig->ok(greta_softmax(rig->compute, rig->stream, &call, {}, 0));
    rig->ok(greta_graph_end(rig->compute, rig->stream, &graph));
    rig->ok(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 0));
    rig->wait();
    check_values(rig->get(call.y, of.x.size()), of.values());

    auto options = sized<greta_step_options>();
    options.rows = 8, options.sequences = 1, options.positions = 64;
    greta_step step = {};
    rig->ok(greta_step_open(rig->compute, &options, &step));
    std::vector<greta_row> live;
    for (uint32_t t = 0; t < 5; ++t) live.push_back({0, t, 0, 0});
    rig->ok(greta_step_set(rig->compute, rig->stream, step, live.data(), uint32_t(live.size())));
    rig->ok(greta_stream_step(rig->compute, rig->stream, step));
    of.shape[0] = 8, of.x.resize(8 * heads * width);
    call.x = rig->tensor(of.shape, of.x), call.y = rig->tensor(of.shape);
    GRETA_RUN(*rig, softmax, call);
    std::vector<float> y = rig->get(call.y, of.x.size());
    Values expected = of.values();
    CHECK(y[5 * heads * width] == kUntouched);
    y.resize(5 * heads * width), expected.resize(y.size());
    check_values(y, expected);
  }
}

TEST_CASE("compute softmax: what does not fit is refused with its numbers", "[compute]") {
  ComputeRig rig;
  auto call = sized<greta_softmax_call>();
  const greta_tensor x = rig.tensor({2, 3, 4, 5}), y = rig.tensor({2, 3, 4, 5});
  const auto refused = [&](greta_status status, const char* text) {
    CHECK(greta_softmax_check(rig.compute, &call) == status);
    CHECK_THAT(greta_error_text(), ContainsSubstring(text));
    call = sized<greta_softmax_call>();
    call.x = x, call.y = y;
  };
  refused(GRETA_ERROR_ARGUMENT, "x: a rank of 0");
  call.cap = -1;
  refused(GRETA_ERROR_ARGUMENT, "a cap of -1");
  call.logarithm = 2;
  refused(GRETA_ERROR_ARGUMENT, "logarithm is 2");
  call.mask = rig.tensor({4, 5});
  refused(GRETA_ERROR_ARGUMENT, "mask: a rank of 2, expected 4");
  call.mask = rig.tensor({2, 2, 4, 5});
  refused(GRETA_ERROR_ARGUMENT, "mask: dimension 1 is 2, expected 1 or the 3 of x");
  call.mask = rig.tensor({2, 1, 4, 5});
  refused(GRETA_ERROR_UNSUPPORTED, "do not stand together");
  call.mask = rig.tensor({1, 1, 4, 6});
  refused(GRETA_ERROR_ARGUMENT, "mask: rows of 6 values, x has 5");
  call.sinks = rig.tensor({2, 3});
  refused(GRETA_ERROR_ARGUMENT, "sinks: a rank of 2, expected 3");
  call.mask = call.y;
  refused(GRETA_ERROR_ARGUMENT, "y and mask overlap");
  call.y = rig.tensor({2, 3, 4, 5}, {}, {90, 30, 6, 1});
  refused(GRETA_ERROR_UNSUPPORTED, "make no rows at equal distances");
}
