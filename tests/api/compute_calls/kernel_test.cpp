// Kernels of the caller on the streams of greta_compute.h: a function on the processor, and SPIR-V.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "support/compute_ops.h"
#include "support/test_kernels.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint32_t kThreads = 64;

// y[i] = i * scale + base, i < count: the block of the kernel index_test.
struct CounterBlock {
  uint64_t y;
  uint32_t count, scale, base;
};

void count_up(const void* given, uint32_t first_group, uint32_t group_count, void*) {
  const auto& block = *static_cast<const CounterBlock*>(given);
  auto* const y = reinterpret_cast<uint32_t*>(block.y);
  const uint32_t end = std::min(block.count, (first_group + group_count) * kThreads);
  for (uint32_t i = first_group * kThreads; i < end; ++i) y[i] = i * block.scale + block.base;
}

// The kernel as code of the caller, for the rig's device. Returns false if this build has none for it.
bool own_code(ComputeRig& rig, std::vector<uint8_t>* code, greta_kernel_code* out) {
  const DeviceInfo& on = rig.compute->device().info();
  *out = sized<greta_kernel_code>();
  out->threads = kThreads;
  if (on.host_functions) {
    out->name = "count_up";
    out->function = count_up;
    return true;
  }
  const KernelRow* const row = find_test_kernel("index_test", on.backend, on.arch);
  if (!row || !unpack({row->code.code.data(), row->code.code.size()}, code).ok()) return false;
  out->name = row->code.name;
  out->code = code->data(), out->code_bytes = code->size();
  return true;
}

}  // namespace

TEST_CASE("compute kernel: it runs in the order of the stream", "[compute]") {
  for (const auto& rig : op_rigs()) {
    std::vector<uint8_t> bytes;
    greta_kernel_code code;
    greta_kernel kernel = {};
    if (!own_code(*rig, &bytes, &code)) continue;
    rig->ok(greta_kernel_open(rig->compute, &code, &kernel));
    std::fill(bytes.begin(), bytes.end(), uint8_t(0));  // it was copied
    constexpr uint32_t kCount = 1000;
    const greta_buffer y = rig->buffer(2 * kCount * 4), copied = rig->buffer(kCount * 4);
    auto info = sized<greta_buffer_info>();
    rig->ok(greta_buffer_describe(rig->compute, y, &info));
    for (uint32_t round = 1; round <= 5; ++round) {
      const CounterBlock block = {info.address + kCount * 4, kCount, round, 7};
      const greta_access access = {y, kCount * 4, kCount * 4, GRETA_ACCESS_WRITE, 0};
      auto launch = sized<greta_kernel_launch_options>();
      launch.groups[0] = (kCount + kThreads - 1) / kThreads, launch.groups[1] = launch.groups[2] = 1;
      launch.block = &block, launch.block_bytes = sizeof block;
      launch.accesses = &access, launch.access_count = 1;
      rig->ok(greta_stream_fill(rig->compute, rig->stream, y, 0, 2 * kCount * 4, 0xffffffff));
      rig->ok(greta_kernel_launch(rig->compute, rig->stream, kernel, &launch));
      rig->ok(greta_stream_copy(rig->compute, rig->stream, copied, 0, y, kCount * 4, kCount * 4));
      if (round == 5) rig->ok(greta_kernel_close(rig->compute, kernel));  // still used by the stream
      rig->wait();
      const auto values = rig->get<uint32_t>(copied, kCount);
      size_t wrong = 0;
      for (uint32_t i = 0; i < kCount; ++i) wrong += values[i] != i * round + 7;
      CHECK(wrong == 0);
      CHECK(rig->get<uint32_t>(y, kCount) == std::vector<uint32_t>(kCount, 0xffffffff));
    }
    auto launch = sized<greta_kernel_launch_options>();
    CHECK(greta_kernel_launch(rig->compute, rig->stream, kernel, &launch) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring("was closed"));
  }
}

TEST_CASE("compute kernel: what is none, or does not fit, is refused with its numbers", "[compute]") {
  ComputeRig rig;
  std::vector<uint8_t> bytes;
  greta_kernel_code right;
  greta_kernel kernel = {};
  if (!own_code(rig, &bytes, &right)) SKIP("no test kernel for the device");
  const auto refused = [&](const greta_kernel_code& code, const char* words) {
    CHECK(greta_kernel_open(rig.compute, &code, &kernel) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  };
  greta_kernel_code code = right;
  code.threads = 2000;
  refused(code, "groups of 2000 threads, from 1 to 1024");
  code = right, code.name = nullptr;
  refused(code, "name is NULL");
  code = right, code.function = nullptr, code.code = nullptr;
  refused(code, "kernel: ");
  const std::vector<uint8_t> noise(64, 0x5a);
  code = right, code.function = nullptr, code.code = noise.data(), code.code_bytes = noise.size();
  refused(code, "kernel: ");
  rig.ok(greta_kernel_open(rig.compute, &right, &kernel));
  const greta_buffer y = rig.buffer(256);
  const CounterBlock block = {};
  greta_access access = {y, 0, 256, GRETA_ACCESS_WRITE, 0};
  auto launch = sized<greta_kernel_launch_options>();
  launch.groups[0] = launch.groups[1] = launch.groups[2] = 1;
  launch.block = &block, launch.block_bytes = sizeof block;
  launch.accesses = &access, launch.access_count = 1;
  const auto not_launched = [&](const char* words) {
    CHECK(greta_kernel_launch(rig.compute, rig.stream, kernel, &launch) == GRETA_ERROR_ARGUMENT);
    CHECK_THAT(greta_error_text(), ContainsSubstring(words));
  };
  launch.groups[1] = 0;
  not_launched("a grid of 1 x 0 x 1");
  launch.groups[1] = 1, launch.block_bytes = 132;
  not_launched("132 bytes, at most 128");
  launch.block_bytes = sizeof block, access.bytes = 257;
  not_launched("outside the buffer of 256");
  access.bytes = 256, access.mode = 4;
  not_launched("access 0 has mode 4");
  access.mode = GRETA_ACCESS_WRITE, access.buffer = {};
  not_launched("launch: access 0");
  access.buffer = y, launch.access_count = 65;
  not_launched("65 accesses, at most 64");
  rig.ok(greta_graph_begin(rig.compute, rig.stream));
  not_launched("a graph is being recorded");
  rig.ok(greta_graph_drop(rig.compute, rig.stream));
}
