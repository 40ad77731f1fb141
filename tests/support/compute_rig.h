// A compute behind the handles of greta_compute.h, on a device of a test's choice.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <utility>
#include <vector>

#include "api/compute/objects.h"
#include "support/api_objects.h"
#include "support/devices.h"

namespace greta::test {

struct ComputeRig {
  std::unique_ptr<Device> inner;  // of a checked device; closed last
  greta_runtime* runtime = nullptr;
  greta_compute* compute = nullptr;
  greta_stream stream = {};

  // On the device that the tests run on.
  explicit ComputeRig(uint64_t limit = 0, const char* device = test_device()) {
    auto options = sized<greta_runtime_options>();
    options.device = device;
    REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
    open(limit);
  }
  // On this device.
  explicit ComputeRig(OpenDevice device, uint64_t limit = 0) : inner(std::move(device.inner)) {
    runtime = new greta_runtime;
    RuntimeDevice& on = runtime->devices.emplace_back();
    on.kernels = std::make_unique<DeviceKernels>(*device.device);
    on.device = std::move(device.device);
    open(limit);
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
