#include "backends/cpu/cpu.h"

#include <stdint.h>

#include <atomic>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "support/device_kernels.h"

// A backend may not include headers of kernels, so both define Scratch. This test compares the two.
namespace of_kernels {
#include "kernels/cpu/scratch.h"
}
static_assert(sizeof(Scratch) == sizeof(of_kernels::Scratch));
static_assert(offsetof(Scratch, data) == offsetof(of_kernels::Scratch, data));
static_assert(offsetof(Scratch, bytes) == offsetof(of_kernels::Scratch, bytes));
static_assert(std::is_same_v<decltype(Scratch::data), decltype(of_kernels::Scratch::data)>);
static_assert(std::is_same_v<decltype(Scratch::bytes), decltype(of_kernels::Scratch::bytes)>);

using namespace greta;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;

namespace {

OpenDevice open_with(const DeviceOptions& options) {
  Device* device = nullptr;
  REQUIRE(open_device("cpu", options, &device).ok());
  return {nullptr, std::unique_ptr<Device>(device)};
}

Kernel load(Device& device, const char* name, HostFunction function) {
  KernelCode code;
  code.name = name;
  code.function = function;
  Kernel kernel;
  REQUIRE(device.load(code, &kernel).ok());
  return kernel;
}

struct SumBlock {
  uint64_t x, y;
};  // y[group] = the float sum of 64 values of x, in order

void sum_cpu(const void* block, uint32_t first, uint32_t count, Scratch*) {
  const auto& p = *static_cast<const SumBlock*>(block);
  const auto* x = reinterpret_cast<const float*>(p.x);
  auto* y = reinterpret_cast<float*>(p.y);
  for (uint32_t group = first; group < first + count; ++group) {
    float sum = 0;
    for (uint32_t i = 0; i < 64; ++i) sum += x[group * 64 + i] * 1.1f;
    y[group] = sum;
  }
}

}  // namespace

TEST_CASE("cpu: describes the processor and what the options leave of it", "[runtime]") {
  const OpenDevice device = open_with(with_threads(3));
  const DeviceInfo& info = device->info();
  CHECK(info.unit_count == 3);
  CHECK(info.shared_bytes == 1 << 20);
  CHECK(info.unified_memory);
  CHECK(info.cpu_type);
  CHECK((info.features | kCpuAmx) == (cpu_features() | kCpuAmx));
  CHECK_THAT(info.name, Equals(cpu_name()));
  DeviceOptions options = with_threads(1);
  options.features_mask = kCpuAvx2;
  CHECK(open_with(options)->info().features == (cpu_features() & kCpuAvx2));
  options.features_mask = 0;
  const OpenDevice baseline = open_with(options);
  CHECK(baseline->info().features == 0);
  CHECK_THAT(baseline->info().arch, Equals("cpu:baseline"));
  CHECK(open_with({})->info().unit_count == cpu_count());
  Device* none = nullptr;
  CHECK(open_device("cpu", with_threads(100000), &none).code == Code::Argument);
}

TEST_CASE("cpu: AMX tiles are used where the system permits them", "[runtime]") {
  if (!(cpu_features() & kCpuAmx)) {
    CHECK(!permit_amx());
    SKIP("this processor has no AMX");
  }
  DeviceOptions options = with_threads(1);
  const bool permitted = permit_amx();
  CHECK(bool(open_with(options)->info().features & kCpuAmx) == permitted);
  CHECK_THAT(open_with(options)->info().arch, Equals(permitted ? "cpu:amx" : "cpu:avx512vnni"));
  options.features_mask = ~uint32_t(kCpuAmx);
  CHECK_THAT(open_with(options)->info().arch, Equals("cpu:avx512vnni"));
}

TEST_CASE("cpu: the same bits for any number of threads", "[runtime]") {
  constexpr uint32_t kGroups = 101;
  std::vector<uint32_t> expected;
  for (uint32_t threads : {1u, 2u, 3u, 7u}) {
    const OpenDevice device = open_with(with_threads(threads));
    const Kernel sum = load(*device, "sum", sum_cpu);
    const auto stream = new_stream(*device);
    Words x(*device, kGroups * 64), y(*device, kGroups), z(*device, kGroups);
    std::vector<uint32_t> input(kGroups * 64);
    for (uint32_t i = 0; i < input.size(); ++i) {
      const float value = std::sin(float(i)) * float(i % 17);
      memcpy(&input[i], &value, 4);
    }
    write_words(*device, x.all(), input);
    for (uint32_t repeat = 0; repeat < 30; ++repeat) {
      const SumBlock block{x.all().address(), y.all().address()};
      const std::span<const uint8_t> bytes{reinterpret_cast<const uint8_t*>(&block), sizeof block};
      REQUIRE(stream->dispatch(sum, {kGroups, 1, 1}, bytes, {}).ok());
      REQUIRE(stream->barrier().ok());
      REQUIRE(stream->copy(z.all(), y.all()).ok());
      REQUIRE(stream->wait().ok());
      const std::vector<uint32_t> words = read_words(*device, z.all());
      if (expected.empty()) expected = words;
      REQUIRE(words == expected);
    }
  }
}

TEST_CASE("cpu: each worker has a mebibyte of its own", "[runtime]") {
  static std::atomic<uint32_t> wrong, calls;
  wrong = calls = 0;
  const OpenDevice device = open_with(with_threads(3));
  const HostFunction use = [](const void*, uint32_t first, uint32_t count, Scratch* scratch) {
    ++calls;
    wrong += scratch->bytes != 1 << 20 || reinterpret_cast<uint64_t>(scratch->data) % 64;
    for (uint32_t round = 0; round < 20; ++round) {
      memset(scratch->data, int(first + round), scratch->bytes);
      for (uint64_t i = 0; i < scratch->bytes; i += 997) wrong += scratch->data[i] != uint8_t(first + round);
    }
    wrong += count != 1;
  };
  const Kernel kernel = load(*device, "scratch", use);
  const auto stream = new_stream(*device);
  REQUIRE(stream->dispatch(kernel, {3, 1, 1}, {}, {}).ok());
  REQUIRE(stream->wait().ok());
  CHECK(calls == 3);
  CHECK(wrong == 0);
}

TEST_CASE("cpu: device memory reads as zero", "[runtime]") {
  const OpenDevice device = open_with(with_threads(1));
  Words words(*device, 50000);
  CHECK(read_words(*device, words.all()) == std::vector<uint32_t>(50000));
}

namespace {

struct Heap {
  uint64_t live = 0, blocks = 0, skew = 0;
  bool full = false;
  static void* allocate(void* user, uint64_t bytes, uint64_t alignment) {
    Heap& self = *static_cast<Heap*>(user);
    if (self.full) return nullptr;
    auto* block = static_cast<uint8_t*>(aligned_alloc(alignment, bytes + alignment));
    memset(block, 0xee, bytes);
    self.live += bytes;
    ++self.blocks;
    return block + self.skew;
  }
  static void release(void* user, void* pointer, uint64_t bytes) {
    Heap& self = *static_cast<Heap*>(user);
    self.live -= bytes;
    free(static_cast<uint8_t*>(pointer) - self.skew);
  }
};

}  // namespace

TEST_CASE("cpu: large blocks go through the host's allocator", "[runtime]") {
  Heap heap;
  DeviceOptions options = with_threads(1);
  options.allocator = {Heap::allocate, Heap::release, &heap};
  const OpenDevice device = open_with(options);
  {
    Words small(*device, 1000), large(*device, 20000);
    CHECK(heap.blocks == 1);
    CHECK(heap.live >= 80000);
    CHECK(read_words(*device, large.slice(0, 1000)) == std::vector<uint32_t>(1000));
    heap.full = true;
    DeviceMemory none;
    CHECK(none.allocate(*device, 70000, Memory::Device).code == Code::Memory);
    CHECK_THAT(error_text(), ContainsSubstring("70000"));
    heap.full = false;
    heap.skew = 64;
    CHECK(none.allocate(*device, 70000, Memory::Device).code == Code::Argument);
    heap.skew = 0;
    CHECK(none.allocate(*device, 70000, Memory::Device).ok());
  }
  CHECK(heap.live == 0);
}

TEST_CASE("cpu: a wait that cannot end is an error, and can be repaired", "[runtime]") {
  const OpenDevice device = open_with(with_threads(2));
  const auto maker = new_stream(*device), taker = new_stream(*device);
  Words a(*device, 64), b(*device, 64);
  OwnedEvent event(*device);
  REQUIRE(maker->fill(a.all(), 4).ok());
  REQUIRE(maker->signal(event.event).ok());
  REQUIRE(taker->wait_for(event.event).ok());
  REQUIRE(taker->copy(b.all(), a.all()).ok());
  CHECK(taker->wait().code == Code::Argument);
  CHECK_THAT(error_text(), ContainsSubstring("did not submit"));
  REQUIRE(maker->submit().ok());
  REQUIRE(taker->wait().ok());
  CHECK(read_words(*device, b.all())[63] == 4);
}

TEST_CASE("cpu: a chain through several streams and reused events runs on one thread", "[runtime]") {
  const OpenDevice device = open_with(with_threads(2));
  const TestKernels kernels(*device);
  OwnedEvent ping(*device), pong(*device);
  const auto first = new_stream(*device), second = new_stream(*device);
  Words a(*device, 64), one(*device, 64);
  REQUIRE(first->fill(a.all(), 0).ok());
  REQUIRE(first->fill(one.all(), 1).ok());
  for (uint32_t round = 0; round < 10; ++round) {
    REQUIRE(first->barrier().ok());
    REQUIRE(kernels.add_words(*first, a.all(), one.all(), a.all()).ok());
    REQUIRE(first->signal(ping.event).ok());
    REQUIRE(second->wait_for(ping.event).ok());
    REQUIRE(kernels.add_words(*second, a.all(), a.all(), a.all()).ok());
    REQUIRE(second->signal(pong.event).ok());
    REQUIRE(first->wait_for(pong.event).ok());
  }
  REQUIRE(second->submit().ok());
  REQUIRE(first->wait().ok());
  REQUIRE(second->wait().ok());
  CHECK(read_words(*device, a.all())[9] == 2046);  // ten times a = 2 (a + 1)
}

namespace {

// A long step, whose launches sleep for as long as the short one beside it has not ended.
struct Beside {
  std::atomic<bool> short_begins = false, short_ended = false;
  std::atomic<uint32_t> launches = 0, out_of_order = 0;
};

struct BesideBlock {
  uint64_t beside;
  uint32_t number;
};

void long_launch(const void* block, uint32_t first, uint32_t, Scratch*) {
  const auto& p = *static_cast<const BesideBlock*>(block);
  auto& beside = *reinterpret_cast<Beside*>(p.beside);
  if (first) return;  // one worker of the two
  while (!beside.short_begins) std::this_thread::yield();
  if (!beside.short_ended) std::this_thread::sleep_for(std::chrono::milliseconds(12));
  if (beside.launches++ != p.number) ++beside.out_of_order;
}

}  // namespace

TEST_CASE("cpu: a long step gives way at a barrier, and then goes on where it was", "[runtime]") {
  constexpr uint32_t kLaunches = 200;
  const OpenDevice device = open_with(with_threads(2));
  const Kernel kernel = load(*device, "long", long_launch);
  const auto one = new_stream(*device), other = new_stream(*device);
  Words a(*device, 64);
  Beside beside;
  const auto record = [&] {
    for (uint32_t i = 0; i < kLaunches; ++i) {
      const BesideBlock block{reinterpret_cast<uint64_t>(&beside), i};
      const std::span<const uint8_t> bytes{reinterpret_cast<const uint8_t*>(&block), sizeof block};
      REQUIRE(one->dispatch(kernel, {2, 1, 1}, bytes, {}).ok());
      REQUIRE(one->barrier().ok());
    }
  };
  Graph graph;
  const bool captured = GENERATE(false, true);
  if (captured) REQUIRE(one->begin_capture().ok());
  record();
  if (captured) {
    REQUIRE(one->end_capture(&graph).ok());
    REQUIRE(one->replay(graph).ok());
  }
  REQUIRE(other->fill(a.all(), 7).ok());
  uint32_t done_by_then = 0;
  Status status;
  std::thread thread([&] {
    beside.short_begins = true;
    status = other->wait();
    done_by_then = beside.launches;
    beside.short_ended = true;
  });
  const Status long_status = one->wait();
  thread.join();
  if (captured) device->destroy(graph);
  CHECK(status.ok());
  CHECK(long_status.ok());
  CHECK(read_words(*device, a.all())[5] == 7);
  CHECK(done_by_then < kLaunches);
  CHECK(beside.launches == kLaunches);
  CHECK(beside.out_of_order == 0);
}

TEST_CASE("cpu: a stream that is gone has done what others wait for", "[runtime]") {
  const OpenDevice device = open_with(with_threads(2));
  OwnedEvent done(*device), never(*device);
  Words a(*device, 64), b(*device, 64);
  const auto taker = new_stream(*device);
  {
    const auto maker = new_stream(*device);
    REQUIRE(maker->fill(a.all(), 6).ok());
    REQUIRE(maker->signal(done.event).ok());
    REQUIRE(maker->submit().ok());
    REQUIRE(maker->signal(never.event).ok());
  }
  REQUIRE(taker->wait_for(done.event).ok());
  REQUIRE(taker->wait_for(never.event).ok());
  REQUIRE(taker->copy(b.all(), a.all()).ok());
  REQUIRE(taker->wait().ok());
  CHECK(read_words(*device, b.all())[0] == 6);
}
