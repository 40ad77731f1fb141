#include <sys/wait.h>
#include <unistd.h>

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

// Works on a device whose n-th allocation fails and whose n-th submission loses it.
static void work_and_fail(uint64_t n) {
  const OpenDevice device = open_null({.fail_allocation = n, .fail_submit = n});
  DeviceMemory memory[3];
  for (DeviceMemory& each : memory) (void)each.allocate(*device, 4096, Memory::Device);
  Stream* opened = nullptr;
  if (!device->create_stream(&opened).ok()) return;
  const std::unique_ptr<Stream> stream(opened);
  for (const DeviceMemory& each : memory) {
    if (each.buffer().bytes) (void)stream->fill(each.all(), 0);
    (void)stream->submit();
    (void)stream->wait();
  }
}

TEST_CASE("null: a process whose device fails goes on and writes nothing", "[runtime]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1), dup2(ends[1], 2);
    close(ends[0]), close(ends[1]);
    for (uint64_t n = 0; n < 8; ++n) work_and_fail(n);
    _exit(7);
  }
  close(ends[1]);
  char written[64];
  CHECK(read(ends[0], written, sizeof written) == 0);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 7));
}
