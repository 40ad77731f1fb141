#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/device_kernels.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("null: the n-th allocation fails, the next works", "[runtime]") {
  NullOptions options;
  options.fail_allocation = 3;
  const OpenDevice device = open_null(options);
  DeviceMemory memory[4];
  CHECK(memory[0].allocate(*device, 10, Memory::Device).ok());
  CHECK(memory[1].allocate(*device, 10, Memory::Upload).ok());
  CHECK(memory[2].allocate(*device, 10, Memory::Device).code == Code::Memory);
  CHECK_THAT(error_text(), ContainsSubstring("allocation 3"));
  CHECK(memory[3].allocate(*device, 10, Memory::Device).ok());
}

TEST_CASE("null: memory is counted", "[runtime]") {
  NullOptions options;
  options.memory_bytes = 1000;
  const OpenDevice device = open_null(options);
  CHECK(device->info().memory_bytes == 1000);
  DeviceMemory first, second;
  CHECK(first.allocate(*device, 600, Memory::Device).ok());
  CHECK(device->memory_free() == 400);
  CHECK(second.allocate(*device, 401, Memory::Device).code == Code::Memory);
  CHECK(second.allocate(*device, 400, Memory::Device).ok());
  first.reset();
  CHECK(device->memory_free() == 600);
}

TEST_CASE("null: a lost device answers every call with an error until it is opened again", "[runtime]") {
  NullOptions options;
  options.fail_submit = 2;
  OpenDevice device = open_null(options);
  {
    const TestKernels kernels(*device);
    const auto stream = new_stream(*device);
    Words a(*device, 64);
    OwnedEvent event(*device);
    REQUIRE(kernels.write_index(*stream, a.all(), 1).ok());
    REQUIRE(stream->signal(event.event).ok());
    REQUIRE(stream->submit().ok());
    CHECK(stream->wait().code == Code::Device);
    CHECK_THAT(error_text(), ContainsSubstring("lost"));
    CHECK(stream->wait().code == Code::Device);
    CHECK(stream->submit().code == Code::Device);
    CHECK(stream->barrier().code == Code::Device);
    CHECK(stream->fill(a.all(), 0).code == Code::Device);
    CHECK(kernels.write_index(*stream, a.all(), 1).code == Code::Device);
    Buffer buffer;
    Kernel kernel;
    Stream* other;
    uint64_t ns;
    CHECK(device->allocate(10, Memory::Device, &buffer).code == Code::Device);
    CHECK(device->load(test_kernel_code(*device, "add"), &kernel).code == Code::Device);
    CHECK(device->create_stream(&other).code == Code::Device);
    CHECK(device->elapsed_ns(event.event, event.event, &ns).code == Code::Device);
  }
  device = open_null();
  const auto stream = new_stream(*device);
  CHECK(stream->wait().ok());
}
