// A model on two devices that is opened step by step, and devices that refuse allocations.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fstream>
#include <iterator>

#include "engine/executor/place.h"
#include "places.h"
#include "support/faulty_device.h"
#include "support/tiny_model.h"

namespace greta::test {

inline TinyShape four_layers() {
  TinyShape shape;
  shape.layers = 4;
  return shape;
}

inline std::shared_ptr<Executor> shared(Engine& engine) {
  return {engine.executor.get(), [](Executor*) {}};
}

inline std::vector<int32_t> first_tokens(uint32_t count) {
  std::vector<int32_t> tokens;
  for (uint32_t i = 0; i < count; ++i) tokens.push_back(int32_t(i * 7 % 60 + 1));
  return tokens;
}

// Logits of two placements: the same bits on processors; else one of them has layers on another kind of
// device.
inline void check_same(const std::vector<float>& got, const std::vector<float>& want) {
  if (on_cpu()) {
    CHECK(got == want);
    return;
  }
  REQUIRE(got.size() == want.size());
  float worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - want[i]));
  CHECK(worst < 1e-3f);
}

inline bool told(const char* words) { return std::string(error_text()).find(words) != std::string::npos; }

// Refuses all allocations after so many, and counts the bytes that are held.
class SmallDevice final : public ForwardingDevice {
 public:
  SmallDevice(Device& inner, const uint32_t& allowed, uint64_t& held)
      : ForwardingDevice(inner), allowed_(allowed), held_(held) {
    info_.imports_host = false;
  }
  Status allocate(uint64_t bytes, Memory memory, Buffer* out) override {
    if (taken_ == allowed_) return fail(Code::Memory, "allocation %u fails", taken_);
    ++taken_;
    GRETA_TRY(inner_.allocate(bytes, memory, out));
    held_ += out->bytes;
    return {};
  }
  Status share_host(void* pages, uint64_t bytes, Buffer* out) override {
    GRETA_TRY(inner_.share_host(pages, bytes, out));
    held_ += out->bytes;
    return {};
  }
  void release(Buffer& buffer) override {
    held_ -= buffer.bytes;
    inner_.release(buffer);
  }

 private:
  const uint32_t& allowed_;
  uint64_t& held_;
  uint32_t taken_ = 0;
};

// A file of the goldens.
inline std::string golden_file(const char* name) {
  std::ifstream in(std::string(GRETA_SOURCE_DIR "/tests/golden/architectures/") + name + ".gguf",
                   std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

// With experts in each layer.
inline std::string file_with_experts() { return golden_file("qwen3moe-converted"); }

// A model on two devices that is opened step by step.
struct Opening {
  std::unique_ptr<Device> device[2];
  std::unique_ptr<DeviceKernels> kernels[2];
  std::vector<ModelDevice> devices;
  TinyModel tiny;
  Model model;

  explicit Opening(const TinyShape& shape = four_layers()) : Opening(make_tiny(shape)) {}
  explicit Opening(const std::string& file) : Opening(of_file(file)) {}
  explicit Opening(TinyModel made) : tiny(std::move(made)) {
    for (uint32_t d : {0, 1}) {
      Device* opened = nullptr;
      REQUIRE(open_device("cpu", {}, &opened).ok());
      device[d].reset(opened);
      wrap(d, nullptr);
    }
  }
  static TinyModel of_file(const std::string& file) {
    TinyModel made;
    made.file = file;
    return made;
  }
  void wrap(uint32_t d, Device* by) {
    kernels[d] = std::make_unique<DeviceKernels>(by ? *by : *device[d]);
    devices.resize(2);
    devices[d] = {&kernels[d]->device(), kernels[d].get(), {}, d ? "second" : "first", d};
  }
  // Gives back what lies on the devices by which they were wrapped, which do not live as long.
  void close() {
    model = {};
    for (auto& each : kernels) each.reset();
  }
  Status describe() {
    Source source;
    GRETA_TRY(source.open_memory(tiny.file.data(), tiny.file.size()));
    return describe_model(std::move(source), *kernels[0], true, Log{}, &model);
  }
};

}  // namespace greta::test
