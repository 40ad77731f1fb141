// A compute behind the handles of greta_compute.h, on a device of a test's choice.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <utility>
#include <vector>

#include "api/compute/objects.h"
#include "support/api_objects.h"
#include "support/devices.h"

namespace greta::test {

constexpr size_t kAround = 12;  // values before and behind a tensor
constexpr float kUntouched = 123456.0f;

struct ComputeRig {
  std::unique_ptr<Device> inner;  // of a checked device; closed last
  greta_runtime* runtime = nullptr;
  greta_compute* compute = nullptr;
  greta_stream stream = {};

  // On the device that the tests run on.
  explicit ComputeRig(uint64_t limit = 0, bool exact = false) {
    auto options = sized<greta_runtime_options>();
    options.device = test_device();
    options.exact = exact;
    REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
    open(limit);
  }
  // On this device.
  explicit ComputeRig(OpenDevice device, bool exact = false) : inner(std::move(device.inner)) {
    runtime = new greta_runtime;
    runtime->exact = exact;
    RuntimeDevice& on = runtime->devices.emplace_back();
    on.kernels = std::make_unique<DeviceKernels>(*device.device);
    on.device = std::move(device.device);
    open(0);
  }
  ComputeRig(const ComputeRig&) = delete;
  ComputeRig& operator=(const ComputeRig&) = delete;
  ~ComputeRig() {
    greta_compute_close(compute);
    greta_runtime_close(runtime);
  }

  greta_buffer buffer(uint64_t bytes, greta_memory memory = GRETA_MEMORY_DEVICE) {
    auto options = sized<greta_buffer_options>();
    options.bytes = bytes;
    options.memory = memory;
    greta_buffer made = {};
    const greta_status status = greta_buffer_open(compute, &options, &made);
    INFO(greta_error_text());
    REQUIRE(status == GRETA_OK);
    return made;
  }
  template <class T>
  greta_buffer put(const std::vector<T>& values) {
    const greta_buffer made = buffer(values.size() * sizeof(T));
    REQUIRE(greta_buffer_write(compute, made, 0, values.data(), values.size() * sizeof(T)) == GRETA_OK);
    return made;
  }
  template <class T>
  std::vector<T> get(greta_buffer from, size_t count, uint64_t offset = 0) {
    std::vector<T> values(count);
    const greta_status status = greta_buffer_read(compute, from, offset, values.data(), count * sizeof(T));
    INFO(greta_error_text());
    REQUIRE(status == GRETA_OK);
    return values;
  }
  // A tensor of a shape in a buffer of its own, between bytes that stay as they are.
  greta_tensor tensor(std::vector<uint64_t> shape, const std::vector<float>& values = {},
                      std::vector<uint64_t> strides = {}) {
    greta_tensor made = {};
    made.rank = uint32_t(shape.size());
    uint64_t count = 1;
    for (size_t d = 0; d < shape.size(); ++d) {
      made.shape[d] = shape[d];
      if (!strides.empty()) made.strides[d] = strides[d];
      count = strides.empty() ? count * shape[d] : std::max(count, shape[d] * strides[d]);
    }
    std::vector<float> all(kAround + count + kAround, kUntouched);
    std::copy(values.begin(), values.end(), all.begin() + kAround);
    made.buffer = put(all);
    made.offset = kAround * sizeof(float);
    return made;
  }
  // Its values, with those in gaps. Fails unless what lies around it is untouched.
  std::vector<float> get(const greta_tensor& from, size_t count) {
    const std::vector<float> all = get<float>(from.buffer, count + 2 * kAround);
    for (size_t i = 0; i < kAround; ++i) {
      REQUIRE(all[i] == kUntouched);
      REQUIRE(all[kAround + count + i] == kUntouched);
    }
    return {all.begin() + kAround, all.end() - kAround};
  }
  // Fails unless the status is GRETA_OK.
  void ok(greta_status status) {
    INFO(greta_error_text());
    REQUIRE(status == GRETA_OK);
  }
  // Scratch of exactly so many bytes.
  greta_buffer scratch(uint64_t bytes) { return bytes ? buffer(bytes) : greta_buffer{}; }
  void wait() {
    const greta_status status = greta_stream_wait(compute, stream);
    INFO(greta_error_text());
    REQUIRE(status == GRETA_OK);
  }
  greta_compute_info info() {
    auto info = sized<greta_compute_info>();
    REQUIRE(greta_compute_describe(compute, &info) == GRETA_OK);
    return info;
  }

 private:
  void open(uint64_t limit) {
    auto options = sized<greta_compute_options>();
    options.memory_limit_bytes = limit;
    REQUIRE(greta_compute_open(runtime, &options, &compute) == GRETA_OK);
    REQUIRE(greta_stream_open(compute, &stream) == GRETA_OK);
  }
};

}  // namespace greta::test
