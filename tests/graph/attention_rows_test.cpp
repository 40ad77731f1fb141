// Attention whose groups share the rows of a step by their work has scratch for their sums, and counters that
// say which group is the last. Plans of the rows of GPU backends, made without a device.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstring>

#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;

namespace {

DeviceInfo device_of(const KernelRow& row) {
  DeviceInfo info;
  snprintf(info.backend, sizeof info.backend, "%s", row.backend);
  snprintf(info.arch, sizeof info.arch, "%s", row.target);
  info.features = ~0u;
  info.shared_bytes = 65536;
  info.unit_count = 64;
  return info;
}

// The devices for which this build has attention that shares lone rows.
std::vector<DeviceInfo> built_devices() {
  std::vector<DeviceInfo> devices;
  for (const KernelRow& row : kernel_table()) {
    const DeviceInfo info = device_of(row);
    const auto same = [&](const DeviceInfo& other) {
      return !strcmp(other.backend, info.backend) && !strcmp(other.arch, info.arch);
    };
    if (row.lone_rows && std::ranges::none_of(devices, same)) devices.push_back(info);
  }
  return devices;
}

bool shares_work(const KernelRow& row) { return row.lone_rows || row.tokens_max <= kMaxSplitTokens; }

}  // namespace

TEST_CASE("attention: groups that share rows have scratch and counters", "[graph]") {
  const std::vector<DeviceInfo> devices = built_devices();
  if (devices.empty()) SKIP("built without kernels for GPUs");
  const TinyModel tiny = make_tiny({.width = 256, .heads = 4, .kv_heads = 2, .head_width = 64});
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  const Shape& shape = engine.model->shape;
  Buffer memory;
  memory.bytes = ~uint64_t(0) >> 1;
  StepBuffers buffers;
  uint64_t next = 4096;
  for (Slice* slice : {&buffers.step, &buffers.rope[0], &buffers.token_log, &buffers.counters, &buffers.drawn,
                       &buffers.readback}) {
    *slice = {&memory, next, 1 << 24};
    next += slice->bytes;
  }
  buffers.key_type = buffers.value_type = 1;
  const LayerShape& layer = shape.attending();
  const uint32_t page = layer.kv_heads * kPageTokens * layer.key_width * 2;
  for (uint32_t l = 0; l < shape.layers; ++l) {
    buffers.cache.push_back({{&memory, next, 64 * page}, {&memory, next + 64 * page, 64 * page}, page, page});
    next += 128 * page;
  }
  const StepKey keys[] = {{1, 1, 0, true},
                          {8, 8, 0, true, LoneRows::All},
                          {64, 64, 0, true, LoneRows::All},
                          {64, 8, 0, true, LoneRows::First}};
  for (const DeviceInfo& info : devices)
    for (const StepKey& key : keys) {
      INFO(info.backend << " " << info.arch << ", " << key.tokens << " tokens");
      GretaGraph graph({&info});
      const Status status =
          build_step(*engine.model->arch, shape, engine.model->weights(), buffers, key, &graph);
      INFO(error_text());
      REQUIRE(status.ok());
      size_t shared = 0;
      for (const GretaGraph::Command& command : graph.commands()) {
        if (command.calls.empty()) continue;
        const Call& lead = lead_call(command.calls);
        if (lead.op != Op::Attention || !shares_work(*command.row)) continue;
        ++shared;
        CHECK(lead.slot[kScratch].buffer);
        CHECK(lead.slot[kCounters].buffer);
      }
      CHECK(shared >= shape.layers);
    }
}
