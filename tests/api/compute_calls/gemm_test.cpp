// General products of greta_compute.h, against float64: types, transposes, batches, strides, and what is
// refused. The kernels by themselves are checked by "gemm: every row agrees with float64".
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint64_t kM = 19, kN = 21, kK = 40, kBatch = 3;

// Multiples of 1/8 from -2 to 2, which all types have, and whose products and sums float32 has.
std::vector<float> eighths(size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) value = float(int32_t(random() % 33) - 16) / 8;
  return values;
}

// A tensor of a type of 16 bits or of float32, in a buffer of its own.
greta_tensor put(ComputeRig& rig, uint32_t type, std::vector<uint64_t> shape,
                 const std::vector<float>& values) {
  greta_tensor made = {};
  if (type == GRETA_TYPE_F32) made = rig.tensor(shape, values);
  made.type = type, made.rank = uint32_t(shape.size());
  std::copy(shape.begin(), shape.end(), made.shape);
  if (type == GRETA_TYPE_F16) made.buffer = rig.put(reference::half_bytes(to_values(values)));
  if (type == GRETA_TYPE_BF16) {
    std::vector<uint16_t> halves;
    for (const float value : values) halves.push_back(uint16_t(__builtin_bit_cast(uint32_t, value) >> 16));
    made.buffer = rig.put(halves);
  }
  return made;
}

greta_gemm_call call_of(ComputeRig& rig, uint32_t type, const std::vector<float>& a,
                        const std::vector<float>& b) {
  auto call = sized<greta_gemm_call>();
  call.alpha = 1;
  call.a = put(rig, type, {kM, kK}, a);
  call.b = put(rig, type, {kK, kN}, b);
  call.y = rig.tensor({kM, kN});
  return call;
}

}  // namespace

TEST_CASE("compute gemm: types and transposes make the bits of float64", "[compute]") {
  for (const auto& rig : op_rigs())
    for (const uint32_t type :
         {uint32_t(GRETA_TYPE_F32), uint32_t(GRETA_TYPE_F16), uint32_t(GRETA_TYPE_BF16)})
      for (uint32_t turned = 0; turned < 4; ++turned) {
        Random random(turned);
        const bool a_turned = turned & 1, b_turned = turned & 2;
        const std::vector<float> a = eighths(kM * kK, random), b = eighths(kK * kN, random);
        greta_gemm_call call = call_of(*rig, type, a, b);
        call.a_transposed = a_turned, call.b_transposed = b_turned;
        if (a_turned) std::swap(call.a.shape[0], call.a.shape[1]);
        if (b_turned) std::swap(call.b.shape[0], call.b.shape[1]);
        GRETA_RUN(*rig, gemm, call);
        const Values expected =
            reference::gemm(to_values(a), to_values(b), {}, {kM, kN, kK, a_turned, b_turned, 1, 0});
        INFO("type " << type << ", transposed " << turned);
        CHECK(to_values(rig->get(call.y, kM * kN)) == expected);
      }
}

TEST_CASE("compute gemm: a batch with one b, gaps between rows, alpha and beta", "[compute]") {
  for (const auto& rig : op_rigs()) {
    Random random(5);
    constexpr uint64_t kStride = kN + 3, kMatrix = kM * kStride + 8;
    const std::vector<float> a = eighths(kBatch * kM * kK, random), b = eighths(kK * kN, random),
                             before = eighths(kBatch * kMatrix, random);
    greta_gemm_call call = call_of(*rig, GRETA_TYPE_F32, {}, b);
    call.a = rig->tensor({kBatch, kM, kK}, a);
    call.y = rig->tensor({kBatch, kM, kN}, before, {kMatrix, kStride, 1});
    call.alpha = 0.5f, call.beta = -2;
    GRETA_RUN(*rig, gemm, call);
    const std::vector<float> y = rig->get(call.y, kBatch * kMatrix);
    std::vector<float> expected = before;
    for (uint64_t i = 0; i < kBatch; ++i) {
      Values of_a, of_y;
      for (uint64_t at = 0; at < kM * kK; ++at) of_a.push_back(double(a[i * kM * kK + at]));
      for (uint64_t at = 0; at < kM * kN; ++at)
        of_y.push_back(double(before[i * kMatrix + at / kN * kStride + at % kN]));
      const Values one = reference::gemm(of_a, to_values(b), of_y, {kM, kN, kK, false, false, 0.5, -2});
      for (uint64_t at = 0; at < kM * kN; ++at)
        expected[i * kMatrix + at / kN * kStride + at % kN] = float(one[at]);
    }
    CHECK(y == expected);
  }
}

TEST_CASE("compute gemm: in a graph, between temporaries, and beside a step", "[compute]") {
  ComputeRig rig;
  Random random(6);
  const std::vector<float> a = eighths(kM * kK, random), b = eighths(kK * kN, random);
  greta_gemm_call call = call_of(rig, GRETA_TYPE_F32, a, b);
  auto options = sized<greta_step_options>();
  options.rows = 5, options.sequences = 1, options.positions = 64;
  greta_step step = {};
  rig.ok(greta_step_open(rig.compute, &options, &step));
  rig.ok(greta_stream_step(rig.compute, rig.stream, step));
  const greta_tensor y = call.y;
  greta_graph graph = {};
  rig.ok(greta_graph_begin(rig.compute, rig.stream));
  auto gemm_of_gemm = call;
  call.y = {GRETA_TYPE_F32, 2, {kM, kN}, {}, {}, 0};
  rig.ok(greta_graph_temporary(rig.compute, rig.stream, kM * kN * sizeof(float), &call.y.buffer));
  rig.ok(greta_gemm(rig.compute, rig.stream, &call, {}, 0));
  gemm_of_gemm.a = call.y, gemm_of_gemm.a_transposed = 1;
  gemm_of_gemm.b = call.y, gemm_of_gemm.y = rig.tensor({kN, kN});
  rig.ok(greta_gemm(rig.compute, rig.stream, &gemm_of_gemm, {}, 0));
  rig.ok(greta_graph_end(rig.compute, rig.stream, &graph));
  rig.ok(greta_graph_run(rig.compute, rig.stream, graph, nullptr, 0));
  rig.wait();
  const Values inner = reference::gemm(to_values(a), to_values(b), {}, {kM, kN, kK, false, false, 1, 0});
  const Values expected = reference::gemm(inner, inner, {}, {kN, kN, kM, true, false, 1, 0});
  CHECK(nmse(rig.get(gemm_of_gemm.y, kN * kN), expected) < 1e-12);
  CHECK(rig.get(y, kM * kN) == std::vector<float>(kM * kN, kUntouched));
}

TEST_CASE("compute gemm: what does not fit is refused with its numbers", "[compute]") {
  ComputeRig rig;
  Random random(7);
  const greta_gemm_call right =
      call_of(rig, GRETA_TYPE_F32, eighths(kM * kK, random), eighths(kK * kN, random));
  const auto refused = [&](greta_status status, const char* words, auto&& change) {
    greta_gemm_call call = right;
    change(call);
    CHECK(greta_gemm_check(rig.compute, &call) == status);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
    CHECK(greta_gemm(rig.compute, rig.stream, &call, {}, 0) == status);
  };
  refused(GRETA_ERROR_ARGUMENT, "a [40][19]",
          [](auto& call) { std::swap(call.a.shape[0], call.a.shape[1]); });
  refused(GRETA_ERROR_ARGUMENT, "transposed", [](auto& call) { call.b_transposed = 1; });
  refused(GRETA_ERROR_ARGUMENT, "a_transposed", [](auto& call) { call.a_transposed = 2; });
  refused(GRETA_ERROR_ARGUMENT, "alpha", [](auto& call) { call.alpha = __builtin_inff(); });
  refused(GRETA_ERROR_UNSUPPORTED, "reserved", [](auto& call) { call.reserved = 1; });
  refused(GRETA_ERROR_ARGUMENT, "rank", [](auto& call) { call.y.rank = 1; });
  refused(GRETA_ERROR_ARGUMENT, "y and a overlap",
          [](auto& call) { call.y.buffer = call.a.buffer, call.y.offset = call.a.offset; });
  refused(GRETA_ERROR_UNSUPPORTED, "type 1, b of type 0", [](auto& call) { call.a.type = GRETA_TYPE_F16; });
  refused(GRETA_ERROR_UNSUPPORTED, "type 26", [](auto& call) { call.a.type = GRETA_TYPE_I32; });
  refused(GRETA_ERROR_ARGUMENT, "2 matrices a for 3 of y", [&](auto& call) {
    call.a = rig.tensor({2, kM, kK});
    call.y = rig.tensor({3, kM, kN});
  });
  refused(GRETA_ERROR_ARGUMENT, "a: ", [](auto& call) { call.a.shape[0] = uint64_t(1) << 60; });
}
