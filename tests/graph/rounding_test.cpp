// Who rounds what a matmul reads: the launch that makes it, where a row does both, else a launch of its own. Plans of
// Vulkan rows, made without a device.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "engine/engine.h"

using namespace greta;

namespace {

constexpr uint32_t kWidth = 512;

struct Plan {
  Buffer memory;
  DeviceInfo info;
  GretaGraph graph{{&info}};
  uint64_t used = 64;
  const Slice step{&memory, 0, 64};

  Plan() {
    snprintf(info.backend, sizeof info.backend, "vulkan");
    info.features = ~0u;
    info.shared_bytes = 32768;
    info.unit_count = 8;
    memory.bytes = 1 << 24;
  }
  Slice take(uint64_t bytes) {
    used += bytes;
    return {&memory, used - bytes, bytes};
  }
  Slice row() { return graph.temporary(kWidth * sizeof(float)); }
  Tensor tensor(QuantType type, uint32_t n, uint32_t depth = kWidth) {
    const Layout layout = preferred_layout(type, {&info});
    return {type, layout, n, depth, 1, take(tensor_bytes(type, layout, n, depth, 1))};
  }
  Call call(Op op, const Slice& x, const Slice& y) {
    Call c;
    c.op = op;
    c.width = kWidth;
    c.slot[kX] = x;
    c.slot[kY] = y;
    c.slot[kStep] = step;
    return c;
  }
  Call matmul(const Slice& x, const Slice& y) {
    Call c = call(Op::Matmul, x, y);
    c.weight = tensor(QuantType::q4_k, kWidth);
    return c;
  }
  Call norm(const Tensor& gain, const Slice& x, const Slice& y) {
    Call c = call(Op::Norm, x, y);
    c.weight = gain;
    c.heads = 1;
    return c;
  }
  Call add(const Slice& to, const Slice& x) {
    Call c = call(Op::Add, to, to);
    c.slot[kX2] = x;
    return c;
  }
  void emit(std::initializer_list<Call> calls) { REQUIRE(graph.add({calls.begin(), calls.size()}, 1).ok()); }
  // "matmul+add+convert" of step i.
  std::string ops(size_t i) const {
    std::string text;
    for (const Call& each : graph.steps()[i].calls) text += (text.empty() ? "" : "+") + std::string(op_name(each.op));
    return text;
  }
};

bool rows_are_built() {
  const auto table = kernel_table();
  return std::any_of(table.begin(), table.end(), [](const KernelRow& row) { return !strcmp(row.name, "matmul_rows_q4_k"); });
}

}  // namespace

TEST_CASE("the launch that makes x rounds it, once for all that read it", "[graph]") {
  if (!rows_are_built()) SKIP("built without the decode rows");
  Plan plan;
  const Slice x = plan.row(), h = plan.row(), y = plan.row();
  const Tensor gain = plan.tensor(QuantType::f32, 1);
  plan.emit({plan.matmul(x, y), plan.add(h, y)});
  for (int i = 0; i < 2; ++i) {
    const Slice normed = plan.row();
    plan.emit({plan.norm(gain, h, normed), plan.matmul(normed, plan.row())});
  }
  REQUIRE(plan.graph.finish().ok());
  REQUIRE(plan.graph.steps().size() == 4);
  CHECK(plan.ops(0) == "convert");  // no launch has made x
  CHECK(plan.ops(1) == "matmul+add+convert");
  CHECK(plan.ops(2) == "norm+matmul");
  CHECK(plan.ops(3) == "norm+matmul");
  CHECK(plan.graph.steps()[2].barrier_before);
  CHECK_FALSE(plan.graph.steps()[3].barrier_before);
  // Both read what step 1 has rounded, with their gain in it.
  const Call& rounded = plan.graph.steps()[1].calls.back();
  for (size_t i : {2, 3}) CHECK(plan.graph.steps()[i].calls[0].slot[kX] == rounded.slot[kY]);
  CHECK(rounded.weight == gain);
}

TEST_CASE("what another launch has changed since, or another gain asks for, is rounded anew", "[graph]") {
  if (!rows_are_built()) SKIP("built without the decode rows");
  Plan plan;
  const Slice x = plan.row(), h = plan.row(), y = plan.row(), other = plan.row();
  const Tensor gains[] = {plan.tensor(QuantType::f32, 1), plan.tensor(QuantType::f32, 1)};
  plan.emit({plan.matmul(x, y), plan.add(h, y)});
  plan.emit({plan.add(h, other)});
  for (const Tensor& gain : gains) {
    const Slice normed = plan.row();
    plan.emit({plan.norm(gain, h, normed), plan.matmul(normed, plan.row())});
  }
  REQUIRE(plan.graph.finish().ok());
  const char* const expected[] = {"convert", "matmul+add", "add", "convert", "norm+matmul", "convert", "norm+matmul"};
  REQUIRE(plan.graph.steps().size() == std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) CHECK(plan.ops(i) == expected[i]);
}

// A norm after a block, as gemma has it: norm and residual are one launch, which rounds for the next.
TEST_CASE("a norm after a block takes the residual and rounds", "[graph]") {
  if (!rows_are_built()) SKIP("built without the decode rows");
  Plan plan;
  const Slice x = plan.row(), h = plan.row(), y = plan.row(), normed = plan.row();
  const Tensor post = plan.tensor(QuantType::f32, 1), gain = plan.tensor(QuantType::f32, 1);
  plan.emit({plan.matmul(x, y)});
  plan.emit({plan.norm(post, y, y), plan.add(h, y)});
  plan.emit({plan.norm(gain, h, normed), plan.matmul(normed, plan.row())});
  REQUIRE(plan.graph.finish().ok());
  const char* const expected[] = {"convert", "matmul", "norm+add+convert", "norm+matmul"};
  REQUIRE(plan.graph.steps().size() == std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) CHECK(plan.ops(i) == expected[i]);
  CHECK(plan.graph.steps()[2].calls.back().weight == gain);
  CHECK(plan.graph.barriers() == 4);
}

// Before norm and residual were one launch there were four more in a layer: norm, add and convert each waited.
TEST_CASE("a layer of gemma2 in decode has seven barriers", "[graph]") {
  if (!rows_are_built()) SKIP("built without the decode rows");
  const Arch* arch = nullptr;
  REQUIRE(find_arch("gemma2", &arch).ok());
  for (const uint32_t layers : {1u, 3u}) {
    Plan plan;
    Shape s;
    s.layers = layers;
    s.width = s.ffn_width = s.vocab = kWidth;
    s.heads = s.kv_heads = 4;
    s.key_width = s.value_width = s.rope_width = kWidth / s.heads;
    s.each.resize(layers);
    Weights weights;
    weights.tied = true;
    weights.token_embedding = weights.output = plan.tensor(QuantType::q4_k, s.vocab);
    weights.output_norm = plan.tensor(QuantType::f32, 1);
    weights.layers.resize(layers);
    StepBuffers buffers;
    buffers.step = plan.step;
    buffers.rope[0] = plan.take(64 * s.rope_width * sizeof(float));
    buffers.token_log = plan.take(kPageTokens * sizeof(uint32_t));
    buffers.counters = plan.take(kCounterCount * sizeof(uint32_t));
    buffers.readback = plan.take(s.vocab * sizeof(float));
    buffers.key_page_bytes = buffers.value_page_bytes = uint32_t(kPageTokens * kWidth * sizeof(float));
    for (uint32_t l = 0; l < layers; ++l) {
      for (const WantedTensor& wanted : layer_tensors(*arch, s, l, false, &weights.layers[l])) {
        if (!wanted.name.text || wanted.name.optional) continue;
        const QuantType type = wanted.use == Use::Vector ? QuantType::f32 : QuantType::q4_k;
        *wanted.tensor = plan.tensor(type, uint32_t(wanted.n), uint32_t(wanted.depth));
      }
      buffers.cache.push_back({plan.take(buffers.key_page_bytes), plan.take(buffers.value_page_bytes)});
    }
    REQUIRE(build_step(*arch, s, weights, buffers, {1, 1, false}, &plan.graph).ok());
    // Before embed, the head and the copy of its logits.
    CHECK(plan.graph.barriers() == 7 * layers + 3);
    CHECK(plan.ops(0) == "embed+convert");
  }
}
