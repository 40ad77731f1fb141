// Products of greta_compute.h with weights of every type, against float64.
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr double kExactLimit = 1e-11, kRoundedLimit = 2e-4;

// Packs a matrix, and gives where it lies.
greta_weights pack(ComputeRig& rig, const selftest::Matrix& matrix) {
  greta_weights weights = {};
  uint64_t bytes = 0, source_bytes = 0;
  rig.ok(greta_weights_size(rig.compute, quant_info(matrix.type).gguf_id, matrix.n, matrix.depth, &weights,
                            &bytes, &source_bytes));
  REQUIRE(source_bytes == matrix.bytes.size());
  weights.buffer = rig.buffer(bytes + 512);
  weights.offset = 256;
  const greta_buffer source = rig.put(matrix.bytes);
  rig.ok(greta_weights_pack(rig.compute, rig.stream, &weights, source, 0));
  rig.ok(greta_buffer_close(rig.compute, source));
  return weights;
}

// Fails unless unpacked weights have the bits of the matrix.
void check_unpacked(ComputeRig& rig, const greta_weights& weights, const selftest::Matrix& matrix) {
  const greta_tensor y = rig.tensor({matrix.n, matrix.depth});
  rig.ok(greta_weights_unpack(rig.compute, rig.stream, &weights, &y));
  rig.wait();
  const std::vector<float> values = rig.get(y, size_t(matrix.n) * matrix.depth);
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) wrong += values[i] != float(matrix.values[i]);
  CHECK(wrong == 0);
}

void check_product(ComputeRig& rig, const greta_weights& weights, const selftest::Matrix& matrix,
                   uint32_t rows, bool biased, double limit, Random& random) {
  const std::vector<float> x = gaussians(size_t(rows) * matrix.depth, random),
                           bias = gaussians(matrix.n, random);
  auto call = sized<greta_linear_call>();
  call.weights = weights;
  call.x = rig.tensor({rows, matrix.depth}, x);
  call.y = rig.tensor({rows, matrix.n});
  if (biased) call.bias = rig.tensor({matrix.n}, bias);
  GRETA_RUN(rig, linear, call);
  Values expected = reference::matmul(matrix.values, to_values(x), matrix.depth);
  for (size_t i = 0; biased && i < expected.size(); ++i) expected[i] += double(bias[i % matrix.n]);
  const double error = nmse(rig.get(call.y, expected.size()), expected);
  INFO(rows << " rows, error " << error);
  CHECK(error <= limit);
}

}  // namespace

TEST_CASE("compute linear, add, gate: float16 and bfloat16 for x and y, alone and in graphs", "[compute]") {
  for (const auto& rig : op_rigs())
    for (const uint32_t type : {uint32_t(GRETA_TYPE_F16), uint32_t(GRETA_TYPE_BF16)})
      for (const uint32_t rows : {1u, 7u, 515u}) {
        Random random(rows);
        INFO("type " << type << ", " << rows << " rows");
        const auto matrix =
            selftest::random_matrix(QuantType::f16, 37, 96, 1, selftest::Scales::Plain, random);
        const std::vector<float> x = gaussians(size_t(rows) * 96, random);
        // Casts of x to the type and back are what the product must see.
        auto cast = sized<greta_cast_call>();
        const auto converted = [&](const greta_tensor& from, uint32_t to_type) {
          cast.x = from, cast.y = rig->tensor({from.shape[0], from.shape[1]});
          cast.y.type = to_type;
          GRETA_RUN(*rig, cast, cast);
          return cast.y;
        };
        const greta_tensor halves = converted(rig->tensor({rows, 96}, x), type);
        const Values seen = to_values(rig->get(converted(halves, GRETA_TYPE_F32), x.size()));
        CHECK(nmse(x, seen) < (type == GRETA_TYPE_F16 ? 1e-7 : 1e-5));
        auto call = sized<greta_linear_call>();
        call.weights = pack(*rig, matrix);
        call.x = halves;
        call.y = rig->tensor({rows, 37}), call.y.type = type;
        GRETA_RUN(*rig, linear, call);
        const Values expected = reference::matmul(matrix.values, seen, 96);
        const double limit = type == GRETA_TYPE_F16 ? 1e-6 : 2e-5;
        CHECK(nmse(rig->get(converted(call.y, GRETA_TYPE_F32), expected.size()), expected) <= limit);
        greta_graph graph = {};
        const greta_tensor result = rig->tensor({rows, 37});
        call.y = result, call.y.type = type;
        rig->ok(greta_graph_begin(rig->compute, rig->stream));
        rig->ok(greta_linear(rig->compute, rig->stream, &call, {}, 0));
        rig->ok(greta_graph_end(rig->compute, rig->stream, &graph));
        rig->ok(greta_graph_run(rig->compute, rig->stream, graph, nullptr, 0));
        rig->wait();
        CHECK(nmse(rig->get(converted(call.y, GRETA_TYPE_F32), expected.size()), expected) <= limit);
        // In place, and only one operand of the type.
        auto add = sized<greta_add_call>();
        add.a = add.y = halves, add.b = rig->tensor({rows, 96}, x);
        GRETA_RUN(*rig, add, add);
        CHECK(nmse(rig->get(converted(add.y, GRETA_TYPE_F32), x.size()),
                   reference::add(seen, to_values(x), 1)) <= limit);
      }
}

TEST_CASE("compute linear: every type agrees with float64, and unpacks to the same bits", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Random random(7);
    uint32_t types = 0;
    for (uint32_t t = 0; t < uint32_t(QuantType::count); ++t) {
      const QuantInfo& info = quant_info(QuantType(t));
      greta_weights unused;
      uint64_t bytes;
      const uint32_t depth = 2 * std::max(info.block, 128u);
      const greta_status there =
          greta_weights_size(rig->compute, info.gguf_id, 16, depth, &unused, &bytes, nullptr);
      if (there == GRETA_ERROR_UNSUPPORTED) continue;
      INFO(info.name);
      rig->ok(there);
      ++types;
      const auto matrix =
          selftest::random_matrix(QuantType(t), 37, depth, 1, selftest::Scales::Plain, random);
      const greta_weights weights = pack(*rig, matrix);
      check_unpacked(*rig, weights, matrix);
      const double limit = rig->runtime->exact ? kExactLimit : kRoundedLimit;
      for (const uint32_t rows : {1, 3, 21})
        check_product(*rig, weights, matrix, rows, rows == 3, limit, random);
    }
    CHECK(types >= 28);
  }
}

TEST_CASE("compute linear: odd shapes of floats, more rows than a launch takes", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Random random(8);
    const bool exact = rig->runtime->exact;
    for (const auto& [n, depth] : {std::pair<uint32_t, uint32_t>{1, 1}, {3, 37}, {130, 65}}) {
      const auto matrix =
          selftest::random_matrix(QuantType::f32, n, depth, 1, selftest::Scales::Plain, random);
      const greta_weights weights = pack(*rig, matrix);
      check_unpacked(*rig, weights, matrix);
      for (const uint32_t rows : {1, 2, 9, 600})
        check_product(*rig, weights, matrix, rows, true, 1e-6, random);
    }
    const auto matrix =
        selftest::random_matrix(QuantType::q4_k, 1100, 256, 1, selftest::Scales::Plain, random);
    const greta_weights weights = pack(*rig, matrix);
    check_unpacked(*rig, weights, matrix);
    for (const uint32_t rows : {512, 513, 1030})
      check_product(*rig, weights, matrix, rows, false, exact ? kExactLimit : kRoundedLimit, random);
  }
}

TEST_CASE("compute linear: the same bits on two streams at once", "[compute]") {
  ComputeRig rig;
  Random random(9);
  const auto matrix = selftest::random_matrix(QuantType::q6_k, 96, 512, 1, selftest::Scales::Plain, random);
  auto call = sized<greta_linear_call>();
  call.weights = pack(rig, matrix);
  call.x = rig.tensor({40, 512}, gaussians(40 * 512, random));
  greta_stream streams[2] = {rig.stream};
  rig.ok(greta_stream_open(rig.compute, &streams[1]));
  rig.wait();
  greta_tensor y[2] = {rig.tensor({40, 96}), rig.tensor({40, 96})};
  uint64_t bytes = 0;
  call.y = y[0];
  rig.ok(greta_linear_scratch(rig.compute, &call, &bytes));
  const greta_buffer scratch[2] = {rig.scratch(bytes), rig.scratch(bytes)};
  std::vector<float> first;
  for (int round = 0; round < 20; ++round) {
    for (int s = 0; s < 2; ++s) {
      call.y = y[s];
      rig.ok(greta_linear(rig.compute, streams[s], &call, scratch[s], 0));
      rig.ok(greta_stream_submit(rig.compute, streams[s]));
    }
    for (const greta_stream stream : streams) rig.ok(greta_stream_wait(rig.compute, stream));
    if (first.empty()) first = rig.get(y[0], 40 * 96);
    CHECK(rig.get(y[0], 40 * 96) == first);
    CHECK(rig.get(y[1], 40 * 96) == first);
  }
}

TEST_CASE("compute linear: what does not fit is refused with its numbers", "[compute]") {
  ComputeRig rig;
  Random random(10);
  uint32_t q8 = 0;
  CHECK(greta_type_find("q8_0", &q8) == GRETA_OK);
  CHECK(greta_type_find("q9_9", &q8) == GRETA_ERROR_ARGUMENT);
  const auto matrix = selftest::random_matrix(QuantType::q8_0, 16, 64, 1, selftest::Scales::Plain, random);
  auto right = sized<greta_linear_call>();
  right.weights = pack(rig, matrix);
  right.x = rig.tensor({3, 64}, gaussians(3 * 64, random));
  right.y = rig.tensor({3, 16});
  uint64_t bytes = 0;
  const auto refused = [&](const greta_linear_call& call, greta_status status, const char* words) {
    CHECK(greta_linear_check(rig.compute, &call) == status);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
    CHECK(greta_linear_scratch(rig.compute, &call, &bytes) == status);
    CHECK(greta_linear(rig.compute, rig.stream, &call, {}, 0) == status);
  };
  auto call = right;
  call.x.shape[1] = 32, call.x.shape[0] = 6;
  refused(call, GRETA_ERROR_ARGUMENT, "weights [16][64]");
  call = right, call.y.shape[0] = 2;
  refused(call, GRETA_ERROR_ARGUMENT, "x has 3 rows of 64, and y 2 of 16");
  call = right, call.bias = rig.tensor({15});
  refused(call, GRETA_ERROR_ARGUMENT, "bias: a tensor [15], expected [16]");
  call = right, call.x.strides[0] = 65, call.x.strides[1] = 1, call.x.shape[0] = 2, call.y.shape[0] = 2;
  refused(call, GRETA_ERROR_UNSUPPORTED, "every 65");
  call = right, call.y = call.x, call.y.shape[0] = 3, call.y.shape[1] = 16;
  refused(call, GRETA_ERROR_ARGUMENT, "overlap");
  call = right, call.y.buffer = call.weights.buffer, call.y.offset = 256;
  refused(call, GRETA_ERROR_ARGUMENT, "y and weights overlap");
  call = right, call.weights.depth = 63;
  refused(call, GRETA_ERROR_ARGUMENT, "blocks of 32");
  call = right, call.weights.n = 0;
  refused(call, GRETA_ERROR_ARGUMENT, "[0][64]");
  call = right, call.weights.n = ~uint64_t(0), call.weights.depth = ~uint64_t(0) / 32 * 32;
  refused(call, GRETA_ERROR_ARGUMENT, "a matrix");
  call = right, call.weights.n = 1 << 20;
  refused(call, GRETA_ERROR_ARGUMENT, "outside the buffer");
  call = right, call.weights.type = 999;
  refused(call, GRETA_ERROR_ARGUMENT, "no type 999");
  call = right, call.weights.type = 24;
  refused(call, GRETA_ERROR_UNSUPPORTED, "");
  call = right, call.weights.layout = 77;
  refused(call, GRETA_ERROR_ARGUMENT, "no layout 77");
  call = right, call.weights.offset = 128;
  refused(call, GRETA_ERROR_ARGUMENT, "multiple of 256");
  call = right, call.weights.buffer = {};
  refused(call, GRETA_ERROR_ARGUMENT, "weights");
  call = right, call.struct_size = 6;
  refused(call, GRETA_ERROR_ARGUMENT, "struct_size");
  CHECK(greta_linear_check(rig.compute, nullptr) == GRETA_ERROR_ARGUMENT);
  GRETA_RUN(rig, linear, right);  // and it works on
}

TEST_CASE("compute linear: scratch that is too small, not aligned, or part of a tensor", "[compute]") {
  ComputeRig rig;
  Random random(12);
  const auto matrix = selftest::random_matrix(QuantType::q4_k, 64, 512, 1, selftest::Scales::Plain, random);
  auto call = sized<greta_linear_call>();
  call.weights = pack(rig, matrix);
  call.x = rig.tensor({40, 512}, gaussians(40 * 512, random));
  call.y = rig.tensor({40, 64});
  uint64_t bytes = 0;
  rig.ok(greta_linear_scratch(rig.compute, &call, &bytes));
  if (!bytes) SKIP("no kernel of this device wants scratch");
  const auto run = [&](greta_buffer scratch, uint64_t offset) {
    return greta_linear(rig.compute, rig.stream, &call, scratch, offset);
  };
  CHECK(run({}, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(run(rig.buffer(bytes - 1), 0) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("scratch") && ContainsSubstring(std::to_string(bytes)));
  CHECK(run(rig.buffer(bytes + 128), 128) == GRETA_ERROR_ARGUMENT);
  CHECK(run(rig.buffer(bytes), ~uint64_t(255)) == GRETA_ERROR_ARGUMENT);
  call.x.buffer = rig.buffer(bytes + 40 * 512 * 4), call.x.offset = 0;
  CHECK(run(call.x.buffer, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(run(rig.buffer(bytes + 512), 512) == GRETA_OK);
  rig.wait();
}

TEST_CASE("compute weights: what cannot be packed is refused", "[compute]") {
  ComputeRig rig;
  Random random(11);
  const auto matrix = selftest::random_matrix(QuantType::q4_0, 32, 64, 1, selftest::Scales::Plain, random);
  const greta_weights weights = pack(rig, matrix);
  const greta_buffer source = rig.put(matrix.bytes);
  const auto packs = [&](const greta_weights& to, greta_buffer from, uint64_t offset) {
    return greta_weights_pack(rig.compute, rig.stream, &to, from, offset);
  };
  CHECK(packs(weights, source, 0) == GRETA_OK);
  CHECK(packs(weights, source, 256) == GRETA_ERROR_ARGUMENT);
  CHECK(packs(weights, source, 2) == GRETA_ERROR_ARGUMENT);
  CHECK(packs(weights, {}, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(packs(weights, weights.buffer, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_weights_pack(rig.compute, rig.stream, nullptr, source, 0) == GRETA_ERROR_ARGUMENT);
  greta_tensor y = rig.tensor({32, 64});
  CHECK(greta_weights_unpack(rig.compute, rig.stream, &weights, nullptr) == GRETA_ERROR_ARGUMENT);
  y.shape[0] = 31;
  CHECK(greta_weights_unpack(rig.compute, rig.stream, &weights, &y) == GRETA_ERROR_ARGUMENT);
  y = rig.tensor({32, 64}), y.buffer = weights.buffer, y.offset = 0;
  CHECK(greta_weights_unpack(rig.compute, rig.stream, &weights, &y) == GRETA_ERROR_ARGUMENT);
  rig.wait();
  check_unpacked(rig, weights, matrix);
  // Packed bytes can be saved and taken back.
  uint64_t bytes;
  greta_weights again = {};
  rig.ok(greta_weights_size(rig.compute, weights.type, 32, 64, &again, &bytes, nullptr));
  again.buffer = rig.put(rig.get<uint8_t>(weights.buffer, bytes, weights.offset));
  check_unpacked(rig, again, matrix);
}
