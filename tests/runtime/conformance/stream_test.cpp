#include <atomic>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <thread>

#include "support/device_kernels.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a dispatch covers its whole grid, in sizes that do not divide", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  for (const uint32_t count : {1u, 63u, 64u, 65u, 127u, 1000u, 64u * 33 + 1}) {
    Words y(*device, count);
    REQUIRE(kernels.write_index(*stream, y.all(), 3, count).ok());
    REQUIRE(stream->wait().ok());
    if (!which.computes) continue;
    const std::vector<uint32_t> words = read_words(*device, y.all());
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < count; ++i) wrong += words[i] != 3 * i + count;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a grid in three dimensions has as many groups as their product", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  if (!device->info().host_functions) return;
  // The kernel sees the groups as one flat index, in which x changes fastest.
  static std::atomic<uint32_t> seen[2 * 3 * 5];
  for (auto& group : seen) group = 0;
  KernelCode code;
  code.name = "count_groups";
  code.function = [](const void*, uint32_t first, uint32_t count, Scratch*) {
    for (uint32_t group = first; group < first + count; ++group) ++seen[group];
  };
  Kernel kernel;
  REQUIRE(device->load(code, &kernel).ok());
  const auto stream = new_stream(*device);
  REQUIRE(stream->dispatch(kernel, {2, 3, 5}, {}, {}).ok());
  REQUIRE(stream->wait().ok());
  for (auto& group : seen) CHECK(group == 1);
  device->unload(kernel);
}

TEST_CASE("work after a barrier sees the work before it", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  constexpr uint32_t kCount = 5000;
  Words a(*device, kCount), b(*device, kCount);
  REQUIRE(kernels.write_index(*stream, a.all(), 1).ok());
  REQUIRE(stream->fill(b.all(), 2).ok());
  for (uint32_t i = 0; i < 20; ++i) {  // b[j] = 2 + 20 j, reading what other workers wrote
    REQUIRE(stream->barrier().ok());
    REQUIRE(kernels.add_words(*stream, a.all(), b.all(), b.all()).ok());
  }
  REQUIRE(stream->wait().ok());
  if (!which.computes) return;
  const std::vector<uint32_t> words = read_words(*device, b.all());
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kCount; ++i) wrong += words[i] != 2 + 20 * i;
  CHECK(wrong == 0);
}

TEST_CASE("fills and copies touch exactly their range", "[runtime]") {
  FOR_EACH_DEVICE(which);
  if (!which.computes) return;
  const OpenDevice device = which.open();
  const auto stream = new_stream(*device);
  constexpr uint32_t kCount = 9000;
  Words a(*device, kCount), b(*device, kCount);
  REQUIRE(stream->fill(a.all(), 0x11111111).ok());
  REQUIRE(stream->fill(b.all(), 0x33333333).ok());
  REQUIRE(stream->barrier().ok());
  REQUIRE(stream->fill(a.slice(1, 7001), 0x22222222).ok());
  REQUIRE(stream->barrier().ok());
  REQUIRE(stream->copy(b.memory.slice(3, 20001), a.memory.slice(2, 20001)).ok());  // odd bytes
  REQUIRE(stream->wait().ok());
  const std::vector<uint32_t> aw = read_words(*device, a.all()), bw = read_words(*device, b.all());
  CHECK(aw[0] == 0x11111111);
  CHECK(aw[1] == 0x22222222);
  CHECK(aw[7001] == 0x22222222);
  CHECK(aw[7002] == 0x11111111);
  CHECK(bw[0] == 0x11333333);
  CHECK(bw[1] == 0x22222211);
  CHECK(bw[5000] == 0x22222222);
  CHECK(bw[5001] == 0x33333333);
}

TEST_CASE("submitting nothing and waiting twice are fine", "[runtime]") {
  FOR_EACH_DEVICE(which);
  if (!which.computes) return;
  const OpenDevice device = which.open();
  Words a(*device, 16);
  const auto first = new_stream(*device);
  REQUIRE(first->fill(a.all(), 5).ok());
  REQUIRE(first->submit().ok());
  REQUIRE(first->submit().ok());  // empty
  REQUIRE(first->wait().ok());
  REQUIRE(first->wait().ok());
  CHECK(read_words(*device, a.all())[15] == 5);
}

TEST_CASE("a stream that is closed finishes what was submitted", "[runtime]") {
  FOR_EACH_DEVICE(which);
  if (!which.computes) return;
  const OpenDevice device = which.open();
  Words a(*device, 16);
  {
    const auto stream = new_stream(*device);
    REQUIRE(stream->fill(a.all(), 9).ok());
    REQUIRE(stream->submit().ok());
  }
  CHECK(read_words(*device, a.all())[3] == 9);
}

TEST_CASE("a bad dispatch is refused with the numbers, and the stream goes on", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  Words a(*device, 64);
  const std::vector<uint8_t> block(kMaxBlockBytes + 1);
  CHECK(stream->dispatch(kernels.index, {1, 1, 1}, block, {}).code == Code::Argument);
  CHECK_THAT(error_text(), ContainsSubstring("index") && ContainsSubstring("129"));
  CHECK(stream->dispatch(kernels.index, {1, 0, 1}, {}, {}).code == Code::Argument);
  CHECK(stream->dispatch(kernels.index, {1 << 16, 1 << 16, 1}, {}, {}).code == Code::Argument);
  CHECK(stream->dispatch(kernels.index, {~0u, ~0u, ~0u}, {}, {}).code == Code::Argument);
  CHECK(stream->dispatch(Kernel{}, {1, 1, 1}, {}, {}).code == Code::Argument);
  REQUIRE(kernels.write_index(*stream, a.all(), 2).ok());
  REQUIRE(stream->wait().ok());
  if (which.computes) CHECK(read_words(*device, a.all())[40] == 80);
}

TEST_CASE("a kernel without code for the device is unsupported", "[runtime]") {
  FOR_EACH_DEVICE(which);
  if (!which.computes) return;
  const OpenDevice device = which.open();
  KernelCode code;
  code.name = "nothing";
  Kernel kernel;
  CHECK(device->load(code, &kernel).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("nothing"));
}

TEST_CASE("streams on several threads do their own work", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  constexpr uint32_t kThreads = 4, kCount = 777;
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {  // REQUIRE is not thread-safe, so there is none in here
      Stream* raw = nullptr;
      if (!device->create_stream(&raw).ok()) return void(++wrong);
      const std::unique_ptr<Stream> stream(raw);
      DeviceMemory a, b, host;
      if (!a.allocate(*device, kCount * 4, Memory::Device).ok() ||
          !b.allocate(*device, kCount * 4, Memory::Device).ok() ||
          !host.allocate(*device, kCount * 4, Memory::Readback).ok())
        return void(++wrong);
      for (uint32_t round = 0; round < 25; ++round) {
        const bool ok = stream->barrier().ok() && kernels.write_index(*stream, a.all(), thread, round).ok() &&
                        stream->fill(b.all(), thread).ok() && stream->barrier().ok() &&
                        kernels.add_words(*stream, a.all(), b.all(), b.all()).ok() &&
                        stream->barrier().ok() && stream->copy(host.all(), b.all()).ok() &&
                        stream->wait().ok();
        wrong += !ok;
        if (!which.computes) continue;
        const auto* words = static_cast<const uint32_t*>(host.buffer().mapped);
        for (uint32_t i = 0; i < kCount; ++i) wrong += words[i] != i * thread + round + thread;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}
