// Products whose columns are split among groups: memory and counters of their own, where they run side by
// side. Plans of Vulkan rows, made without a device.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstring>

#include "graph/graph.h"

using namespace greta;

static DeviceInfo many_units() {
  DeviceInfo info;
  snprintf(info.backend, sizeof info.backend, "vulkan");
  info.features = ~0u;
  info.shared_bytes = 49152;
  info.unit_count = 132;
  return info;
}

static bool apart(const Slice& a, const Slice& b) {
  return a.buffer != b.buffer || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
}

static bool has_vulkan_rows() {
  return std::ranges::any_of(kernel_table(),
                             [](const KernelRow& row) { return !strcmp(row.backend, "vulkan"); });
}

// Products of the same x by matrices of `n` rows.
static void add_products(GretaGraph& graph, Buffer& memory, uint32_t n, uint32_t count, uint32_t tokens) {
  if (!has_vulkan_rows()) SKIP("this build has no Vulkan kernels");
  constexpr uint32_t kDepth = 4096;
  const CallMaker make{{&memory, 0, 64}, {&memory, 4096, kCounterCount * sizeof(uint32_t)}};
  const Slice x = graph.temporary(uint64_t(tokens) * kDepth * sizeof(float));
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t bytes = tensor_bytes(QuantType::q4_k, Layout::Gguf, n, kDepth, 1);
    const Tensor weight = {QuantType::q4_k, Layout::Gguf, n, kDepth, 1, {&memory, (i + 1) * bytes, bytes}};
    const Call call = make.matmul(weight, x, graph.temporary(uint64_t(tokens) * n * sizeof(float)));
    REQUIRE(graph.add({&call, 1}, tokens).ok());
  }
  REQUIRE(graph.finish().ok());
}

// The launches of products; a test is skipped where none can be split.
static std::vector<const GretaGraph::Command*> products_of(const GretaGraph& graph) {
  std::vector<const GretaGraph::Command*> products;
  for (const GretaGraph::Command& command : graph.commands())
    if (command.calls[0].op == Op::Matmul) products.push_back(&command);
  if (!products[0]->row->tile_tokens) SKIP("no compiler of shaders that knows cooperative matrices");
  return products;
}

TEST_CASE("split columns: products beside each other share neither sums nor counters", "[graph]") {
  const DeviceInfo info = many_units();
  Buffer memory;
  memory.bytes = uint64_t(1) << 32;
  GretaGraph graph({&info});
  add_products(graph, memory, 4096, 3, 32);
  const auto products = products_of(graph);
  for (const GretaGraph::Command* a : products) {
    const Call& call = a->calls[0];
    CHECK(call.matmul.splits > 1);
    CHECK(a->launch.groups[2] == call.matmul.splits);
    CHECK(call.slot[kScratch].bytes == split_bytes(call, *a->row, 32));
    CHECK(call.slot[kCounters].bytes == tile_count(call, *a->row, 32) * sizeof(uint32_t));
    for (const GretaGraph::Command* b : products) {
      CHECK(a->stage == b->stage);
      if (a == b) continue;
      CHECK(apart(call.slot[kScratch], b->calls[0].slot[kScratch]));
      CHECK(apart(call.slot[kCounters], b->calls[0].slot[kCounters]));
    }
  }
}

TEST_CASE("split columns: where counters are used again there is a barrier between", "[graph]") {
  const DeviceInfo info = many_units();
  Buffer memory;
  memory.bytes = uint64_t(1) << 32;
  GretaGraph graph({&info});
  add_products(graph, memory, 4096, 400, 32);
  const auto products = products_of(graph);
  const Slice first = products[0]->calls[0].slot[kCounters];
  uint32_t again = 0;
  for (size_t i = 1; i < products.size(); ++i) {
    if (apart(products[i]->calls[0].slot[kCounters], first)) continue;
    ++again;
    CHECK(products[i]->stage > products[0]->stage);
  }
  CHECK(again > 0);
}
