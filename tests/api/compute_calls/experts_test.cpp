// Experts of greta_compute.h against float64, and tokens that are drawn.
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

greta_tensor integers(ComputeRig& rig, std::vector<uint64_t> shape) {
  greta_tensor made = rig.tensor(std::move(shape));
  made.type = GRETA_TYPE_I32;
  return made;
}

std::vector<uint32_t> numbers(ComputeRig& rig, const greta_tensor& from, size_t count) {
  std::vector<uint32_t> made(count);
  const std::vector<float> bits = rig.get(from, count);
  memcpy(made.data(), bits.data(), count * sizeof(uint32_t));
  return made;
}

void put_numbers(ComputeRig& rig, const greta_tensor& to, const reference::Ids& ids) {
  rig.ok(greta_buffer_write(rig.compute, to.buffer, to.offset, ids.data(), ids.size() * sizeof(uint32_t)));
}

}  // namespace

TEST_CASE("compute experts: routing, their products and the sum of them", "[compute]") {
  constexpr uint32_t kExperts = 6, kUsed = 2, kWidth = 64, kInner = 32;
  for (const auto& rig : op_rigs())
    for (const uint64_t rows : {1, 5, 515}) {
      INFO(rows << " rows");
      Random random(rows);
      const std::vector<float> values = gaussians(rows * kExperts, random),
                               bias = gaussians(kExperts, random), x = gaussians(rows * kWidth, random),
                               biases = gaussians(kExperts * kInner, random);
      auto route = sized<greta_route_call>();
      route.gating = GRETA_GATING_SIGMOID, route.normalise = 1, route.scale = 1.5f;
      route.logits = rig->tensor({rows, kExperts}, values), route.bias = rig->tensor({kExperts}, bias);
      route.ids = integers(*rig, {rows, kUsed}), route.weights = rig->tensor({rows, kUsed});
      GRETA_RUN(*rig, route, route);
      const reference::Routing chosen =
          reference::route(to_values(values), to_values(bias), {kExperts, kUsed, 1, 1, true, true, 1.5});
      CHECK(numbers(*rig, route.ids, rows * kUsed) == chosen.ids);
      CHECK(nmse(rig->get(route.weights, rows * kUsed), chosen.weights) <= 1e-11);

      const auto matrix = selftest::random_matrix(QuantType::q8_0, kExperts * kInner, kWidth, 1,
                                                  selftest::Scales::Plain, random);
      greta_weights packed = {};
      uint64_t bytes = 0;
      auto each = sized<greta_expert_linear_call>();
      each.experts = kExperts;
      rig->ok(greta_weights_size(rig->compute, quant_info(matrix.type).gguf_id, kExperts * kInner, kWidth,
                                 &packed, &bytes, nullptr));
      packed.buffer = rig->buffer(bytes);
      rig->ok(greta_weights_pack(rig->compute, rig->stream, &packed, rig->put(matrix.bytes), 0));
      each.weights = packed, each.weights.n = kInner;
      each.x = rig->tensor({rows, kWidth}, x), each.ids = route.ids;
      each.bias = rig->tensor({kExperts, kInner}, biases);
      each.y = rig->tensor({rows, kUsed, kInner});
      GRETA_RUN(*rig, expert_linear, each);
      const Values made = reference::matmul_expert(matrix.values, to_values(biases), to_values(x), chosen.ids,
                                                   {kInner, kWidth, kUsed, 1});
      CHECK(nmse(rig->get(each.y, rows * kUsed * kInner), made) <= (rig->runtime->exact ? 1e-11 : 2e-4));

      auto combine = sized<greta_combine_call>();
      combine.x = each.y, combine.weights = route.weights, combine.y = rig->tensor({rows, kInner});
      const Values slots = to_values(rig->get(each.y, rows * kUsed * kInner));
      GRETA_RUN(*rig, combine, combine);
      CHECK(nmse(rig->get(combine.y, rows * kInner),
                 reference::combine(slots, chosen.weights, kInner, kUsed)) <= 1e-11);
    }
}

TEST_CASE("compute experts: what does not fit is refused with its numbers", "[compute]") {
  ComputeRig rig;
  auto route = sized<greta_route_call>();
  route.logits = rig.tensor({3, 8}, std::vector<float>(24));
  route.ids = integers(rig, {3, 2}), route.weights = rig.tensor({3, 2});
  const auto refused = [&](const greta_route_call& call, greta_status status, const char* words) {
    CHECK(greta_route_check(rig.compute, &call) == status);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  };
  rig.ok(greta_route_check(rig.compute, &route));
  greta_route_call call = route;
  call.ids.type = GRETA_TYPE_F32;
  refused(call, GRETA_ERROR_UNSUPPORTED, "ids: values of type 0, only integers (26)");
  call = route, call.weights = rig.tensor({3, 3});
  refused(call, GRETA_ERROR_ARGUMENT, "weights: a tensor [3][3], expected [3][2]");
  call = route, call.ids = integers(rig, {3, 9}), call.weights = rig.tensor({3, 9});
  refused(call, GRETA_ERROR_ARGUMENT, "9 of 8 experts");
  call = route, call.groups = 3;
  refused(call, GRETA_ERROR_UNSUPPORTED, "3 groups");
  call = route, call.weights.buffer = call.logits.buffer;
  refused(call, GRETA_ERROR_ARGUMENT, "overlap");
  auto each = sized<greta_expert_linear_call>();
  each.experts = 4000;
  CHECK(greta_expert_linear_check(rig.compute, &each) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("4000 experts, from 1 to 1024"));
  // Ids that are no experts touch nothing beyond the weights.
  uint64_t bytes = 0;
  each.experts = 2;
  rig.ok(greta_weights_size(rig.compute, GRETA_TYPE_F32, 16, 32, &each.weights, &bytes, nullptr));
  each.weights.buffer = rig.put(std::vector<float>(2 * 16 * 32));
  each.ids = integers(rig, {1, 2});
  put_numbers(rig, each.ids, {1u << 31, 7});
  each.x = rig.tensor({1, 32}, std::vector<float>(32)), each.y = rig.tensor({1, 2, 16});
  GRETA_RUN(rig, expert_linear, each);
}

TEST_CASE("compute sample: drawn as in float64, and the step goes on without the host", "[compute]") {
  constexpr uint32_t kTokens = 50, kRows = 4, kSequences = 3, kPositions = 20;
  for (const auto& rig : op_rigs()) {
    Random random(5);
    auto options = sized<greta_step_options>();
    options.rows = kRows, options.sequences = kSequences, options.positions = kPositions;
    greta_step step = {};
    rig->ok(greta_step_open(rig->compute, &options, &step));
    rig->ok(greta_stream_step(rig->compute, rig->stream, step));
    const std::vector<float> logits = gaussians(kRows * kTokens, random, 3);
    auto sample = sized<greta_sample_call>();
    sample.logits = rig->tensor({kRows, kTokens}, logits);
    sample.drawn = integers(*rig, {kSequences, 16});
    CHECK(greta_sample(rig->compute, rig->stream, &sample, {}, 0) == GRETA_ERROR_ARGUMENT);
    auto draw = sized<greta_draw>();
    draw.temperature = 0.8f, draw.top_p = 0.9f, draw.top_k = 20, draw.seed = 77;
    rig->ok(greta_step_draw(rig->compute, rig->stream, step, 2, &draw));
    // Outputs of sequences 2 and 0; the row between has none.
    const greta_row rows[] = {{0, 3, 2, 1}, {0, 9, 1, 0}, {0, 5, 0, 1}};
    rig->ok(greta_step_set(rig->compute, rig->stream, step, rows, 3));
    const auto row = [&](uint32_t i) {
      return std::vector<float>(logits.begin() + i * kTokens, logits.begin() + (i + 1) * kTokens);
    };
    const auto drawn = [&](uint32_t sequence, uint32_t position) {
      return numbers(*rig, sample.drawn, kSequences * 16)[sequence * 16 + position];
    };
    for (uint32_t round = 0; round < 3; ++round) {
      GRETA_RUN(*rig, sample, sample);
      const reference::Draw filtered =
          reference::sample(row(0), {}, 3 + round, {double(0.8f), double(0.9f), 0, 0, 20, 0, 77});
      if (filtered.margin > 1e-5) CHECK(drawn(2, 3 + round) == filtered.id);
      CHECK(drawn(0, 5 + round) == reference::sample(row(1), {}, 5, {0, 0, 0, 0, 0, 0, 0}).id);
    }
    // Row 0 has moved on to position 6, and the row without an output has not.
    const greta_row late[] = {{0, kPositions - 2, 0, 1}};
    rig->ok(greta_step_set(rig->compute, rig->stream, step, late, 1));
    GRETA_RUN(*rig, sample, sample);
    const greta_buffer scratch = rig->buffer(1 << 16);
    CHECK(greta_sample(rig->compute, rig->stream, &sample, scratch, 0) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("a row at position 19 would leave the 20"));
    draw.top_p = 2;
    CHECK(greta_step_draw(rig->compute, rig->stream, step, 2, &draw) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("top_p 2"));
    greta_stream other = {};
    rig->ok(greta_stream_open(rig->compute, &other));
    CHECK(greta_stream_step(rig->compute, other, step) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("it is used on stream"));
    rig->ok(greta_stream_close(rig->compute, rig->stream));
    rig->stream = other;
    rig->ok(greta_stream_step(rig->compute, other, step));
  }
}

TEST_CASE("compute sample: a graph of table, product and draw writes by itself", "[compute]") {
  constexpr uint32_t kTokens = 24, kWidth = 32, kRows = 2;
  for (const auto& rig : op_rigs()) {
    Random random(6);
    auto options = sized<greta_step_options>();
    options.rows = kRows, options.sequences = kRows, options.positions = 40;
    greta_step step = {};
    rig->ok(greta_step_open(rig->compute, &options, &step));
    const auto weights = [&](const std::vector<float>& values) {
      greta_weights made = {};
      uint64_t bytes = 0;
      rig->ok(greta_weights_size(rig->compute, GRETA_TYPE_F32, kTokens, kWidth, &made, &bytes, nullptr));
      made.buffer = rig->buffer(bytes);
      rig->ok(greta_weights_pack(rig->compute, rig->stream, &made, rig->put(values), 0));
      return made;
    };
    const std::vector<float> table = gaussians(kTokens * kWidth, random),
                             head = gaussians(kTokens * kWidth, random);
    auto embed = sized<greta_embed_call>();
    auto linear = sized<greta_linear_call>();
    auto sample = sized<greta_sample_call>();
    embed.table = weights(table), linear.weights = weights(head);
    embed.y = linear.x = rig->tensor({kRows, kWidth});
    linear.y = sample.logits = rig->tensor({kRows, kTokens});
    linear.outputs = 1;
    sample.drawn = integers(*rig, {kRows, 16});
    greta_graph graph = {};
    rig->ok(greta_stream_step(rig->compute, rig->stream, step));
    rig->ok(greta_graph_begin(rig->compute, rig->stream));
    rig->ok(greta_embed(rig->compute, rig->stream, &embed, {}, 0));
    rig->ok(greta_linear(rig->compute, rig->stream, &linear, {}, 0));
    rig->ok(greta_sample(rig->compute, rig->stream, &sample, {}, 0));
    rig->ok(greta_graph_end(rig->compute, rig->stream, &graph));
    const greta_row rows[] = {{3, 0, 0, 1}, {7, 1, 1, 1}};
    rig->ok(greta_step_set(rig->compute, rig->stream, step, rows, 2));
    for (int i = 0; i < 10; ++i) rig->ok(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 0));
    rig->wait();
    const auto all = numbers(*rig, sample.drawn, kRows * 16);
    for (uint32_t s = 0; s < 2; ++s) {
      uint32_t token = rows[s].token;
      for (uint32_t i = 0; i < 10; ++i) {
        const Values logits = reference::matmul(
            to_values(head), reference::embed(to_values(table), kWidth, {token}, 1), kWidth);
        token = uint32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
        CHECK(all[s * 16 + s + i] == token);
      }
    }
    for (int i = 0; i < 28; ++i) rig->ok(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 0));
    CHECK(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 0) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("position 39"));
    rig->wait();
  }
}
