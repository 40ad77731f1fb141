#include "engine/model/weight_parts.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/devices.h"
#include "support/op_rig.h"

using namespace greta;
using namespace greta::test;

// Lets the call's weight be in parts of at most 32 rows of q8_0.
static void cut_weight(Call* call, std::vector<Tensor>* parts) {
  const uint64_t limit = tensor_bytes(QuantType::q8_0, Layout::Gguf, 32, call->weight.depth, 1);
  REQUIRE(cut_tensor(call->weight, limit, parts).ok());
  uint64_t at = call->weight.slice.offset;
  for (Tensor& part : *parts) {
    part.slice = {call->weight.slice.buffer, at, bytes_of(part)};
    at += bytes_of(part);
  }
  call->weight.parts = parts;
  call->weight.slice = {};
}

TEST_CASE("weight parts: rows, or whole matrices, each part within the limit", "[engine]") {
  for (const Layout layout : {Layout::Gguf, Layout::Packed, Layout::Planes})
    for (const uint32_t count : {1u, 7u}) {
      const Tensor whole = {QuantType::q8_0, layout, 100, 256, count, {}};
      for (uint64_t limit = bytes_of(whole) - 1; limit > bytes_of(whole) / (count > 1 ? 7 : 6);
           limit = limit * 9 / 10) {
        CAPTURE(layout_name(layout), count, limit);
        std::vector<Tensor> parts;
        REQUIRE(cut_tensor(whole, limit, &parts).ok());
        CHECK(parts.size() >= 2);
        uint32_t rows = 0;
        for (const Tensor& part : parts) {
          CHECK(bytes_of(part) <= limit);
          CHECK((count > 1 ? part.n == whole.n : part.count == 1));
          CHECK((&part == &parts.back() || part.n % kPackRows == 0 || count > 1));
          rows += part.n * part.count;
        }
        CHECK(rows == whole.n * whole.count);
      }
    }
}

TEST_CASE("weight parts: rows of each matrix where one is above the limit, but not less than a group of rows",
          "[engine]") {
  std::vector<Tensor> parts;
  const Tensor experts = {QuantType::f32, Layout::Gguf, 100, 256, 3, {}};
  CHECK(cut_tensor(experts, 102400, &parts).ok());
  CHECK(parts.size() == 3);
  REQUIRE(cut_tensor(experts, 102399, &parts).ok());
  REQUIRE(parts.size() == 6);
  for (size_t i = 0; i < parts.size(); ++i) {
    CHECK(parts[i].n == (i % 2 ? 4 : 96));
    CHECK(parts[i].count == 1);
  }
  CHECK(cut_tensor(experts, 16 * 1024 - 1, &parts).code == Code::Unsupported);
  CHECK_THAT(error_text(), Catch::Matchers::ContainsSubstring("16 rows of it have 16384 bytes"));
}

TEST_CASE("weight parts: rows of the matrices of experts make the bits of whole ones", "[engine]") {
  OpRig rig;
  Random random(4);
  const uint32_t n = 40, depth = 64, experts = 3, used = 2, bucket = 8, tokens = 5;
  for (const uint32_t stride : {n, n + 3}) {
    StepRows steps;
    steps.add_tokens(tokens);
    Ids ids;
    for (uint32_t i = 0; i < bucket * used; ++i) ids.push_back(i < tokens * used ? i % experts : ~0u);
    const Matrix matrix = random_matrix(QuantType::q8_0, n, depth, experts, Scales::Plain, random);
    const Slice x = rig.put_padded(gaussians(tokens * depth, random), bucket * depth),
                y = rig.room(uint64_t(bucket) * used * stride * 4), step = steps.put(rig);
    Call call =
        CallMaker{step}.matmul_each(put_matrix(rig, matrix, Layout::Gguf), x, rig.put(ids), y, used, 1);
    call.slot[kBias] = rig.put(gaussians(experts * n, random, 3));
    call.y_stride = stride == n ? 0 : stride;
    rig.run_plain(call, bucket);
    const auto whole = rig.get<uint32_t>(call.slot[kY]);

    std::vector<Tensor> parts;
    cut_weight(&call, &parts);
    GretaGraph graph({&rig.info(), true});
    REQUIRE(add_parts(call, bucket, &graph).ok());
    REQUIRE(graph.commands().size() == 2 * experts);
    rig.poison(call.slot[kY]);
    for (const GretaGraph::Command& command : graph.commands())
      rig.run(command.calls, *command.row, command.bucket);
    CHECK(rig.get<uint32_t>(call.slot[kY]) == whole);
    rig.reset();
  }
}

TEST_CASE("weight parts: rows of a matrix make the bits of the whole one", "[engine]") {
  const OpenDevice device = open_named(test_device(), 0);
  Rig rig(*device);
  Random random(5);
  const uint32_t n = 80, depth = 64;
  for (const auto& [bucket, tokens] : {std::pair(1u, 1u), std::pair(2u, 2u), std::pair(8u, 5u)}) {
    CAPTURE(bucket);
    StepRows steps;
    steps.add_tokens(tokens);
    const Matrix matrix = random_matrix(QuantType::q8_0, n, depth, 1, Scales::Plain, random);
    const Slice x = rig.put_padded(gaussians(tokens * depth, random), bucket * depth),
                y = rig.room(uint64_t(bucket) * n * sizeof(float)), step = steps.put(rig);
    Call call = CallMaker{step}.matmul(put_matrix(rig, matrix, Layout::Gguf), x, y);
    call.slot[kBias] = rig.put(gaussians(n, random, 3));
    rig.run_plain(call, bucket);
    const auto whole = rig.get<uint32_t>(call.slot[kY]);

    std::vector<Tensor> parts;
    cut_weight(&call, &parts);
    REQUIRE(parts.size() == 3);
    GretaGraph graph({&rig.info(), true});
    REQUIRE(add_parts(call, bucket, &graph).ok());
    REQUIRE(graph.finish().ok());
    // A single row of y is written in place, others are copied there.
    CHECK(graph.commands().size() == (bucket == 1 ? 3 : 6));
    DeviceKernels shared(*device);
    KernelSet kernels(shared);
    DeviceMemory arena;
    REQUIRE(arena.allocate(*device, std::max<uint64_t>(graph.arena_bytes(), 4), Memory::Device).ok());
    REQUIRE(graph.bind(kernels, arena.all()).ok());
    REQUIRE(kernels.compile().ok());
    rig.poison(call.slot[kY]);
    Stream* opened = nullptr;
    REQUIRE(device->create_stream(&opened).ok());
    const std::unique_ptr<Stream> stream(opened);
    REQUIRE(graph.run(*stream).ok());
    REQUIRE(stream->wait().ok());
    auto cut = rig.get<uint32_t>(call.slot[kY]);
    CHECK(std::equal(cut.begin(), cut.begin() + tokens * n, whole.begin()));
    rig.reset();
  }
}

TEST_CASE("arenas have a GiB at most, and what the device allows", "[engine]") {
  DeviceInfo info;
  info.max_allocation_bytes = uint64_t(4) << 30;
  CHECK(arena_limit(info) == uint64_t(1) << 30);
  info.max_allocation_bytes = 1000;
  CHECK(arena_limit(info) == 768);
}
