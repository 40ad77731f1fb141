// Plants the mistakes that a program makes with a driver which works beside it, and sees that the mock
// runtime shows each of them. Without these it could let them pass.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "support/device_kernels.h"
#include "support/hip_orders.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

constexpr uint32_t kCount = 500;

// b = a + a, where another stream fills a. Returns whether b is right.
static bool hand_over(Device& device, bool with_event) {
  const TestKernels kernels(device);
  const auto maker = new_stream(device), taker = new_stream(device);
  OwnedEvent made(device);
  Words a(device, kCount), b(device, kCount), host(device, kCount, Memory::Readback);
  REQUIRE(maker->fill(a.all(), 21).ok());
  REQUIRE(maker->signal(made.event).ok());
  REQUIRE(maker->submit().ok());
  if (with_event) REQUIRE(taker->wait_for(made.event).ok());
  REQUIRE(kernels.add_words(*taker, a.all(), a.all(), b.all()).ok());
  REQUIRE(taker->barrier().ok());
  REQUIRE(taker->copy(host.all(), b.all()).ok());
  REQUIRE(taker->wait().ok());
  return static_cast<const uint32_t*>(host.memory.buffer().mapped)[kCount - 1] == 42;
}

TEST_CASE("mutant: an event that is not waited for", "[hip]") {
  HipOrders orders;
  uint32_t seen = 0;
  for (const char* seed : {"0", "1", "2", "3"}) {
    orders.set("SEED", seed);
    const OpenDevice device = open_mock_hip();
    CHECK(hand_over(*device, true));
    seen += !hand_over(*device, false);
  }
  CHECK(seen > 0);
}

TEST_CASE("mutant: a result that is read before the wait", "[hip]") {
  HipOrders orders;
  const OpenDevice device = open_mock_hip();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  Words y(*device, kCount, Memory::Readback);
  const auto* words = static_cast<const uint32_t*>(y.memory.buffer().mapped);
  REQUIRE(kernels.write_index(*stream, y.all(), 3).ok());
  REQUIRE(stream->submit().ok());
  CHECK(words[7] == 0xcdcdcdcd);
  REQUIRE(stream->wait().ok());
  CHECK(words[7] == 21);
}

TEST_CASE("mutant: an upload that is written again before the wait", "[hip]") {
  HipOrders orders;
  const OpenDevice device = open_mock_hip();
  const auto stream = new_stream(*device);
  Words up(*device, kCount, Memory::Upload), y(*device, kCount);
  auto* words = static_cast<uint32_t*>(up.memory.buffer().mapped);
  words[0] = 1;
  REQUIRE(stream->copy(y.all(), up.all()).ok());
  REQUIRE(stream->submit().ok());
  words[0] = 2;
  REQUIRE(stream->wait().ok());
  CHECK(read_words(*device, y.all())[0] == 2);
}

TEST_CASE("mutant: a kernel that writes behind the end of its buffer", "[hip]") {
  HipOrders orders;
  const OpenDevice device = open_mock_hip();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  Words y(*device, 64);
  Buffer longer = y.memory.buffer();  // one word more than it has
  longer.bytes += 4;
  REQUIRE(kernels.write_index(*stream, {&longer, 0, longer.bytes}, 3).ok());
  CHECK(stream->wait().code == Code::Device);
  CHECK_THAT(error_text(),
             ContainsSubstring("index_test") && ContainsSubstring("behind the end of a buffer"));
}

TEST_CASE("mutant: an argument block of another size, an address of the host", "[hip]") {
  HipOrders orders;
  for (const bool of_host : {false, true}) {
    const OpenDevice device = open_mock_hip();
    const TestKernels kernels(*device);
    const auto stream = new_stream(*device);
    Words y(*device, 64);
    uint32_t on_the_host[64] = {};
    const uint64_t address = of_host ? reinterpret_cast<uint64_t>(on_the_host) : y.all().address();
    const IndexTestBlock block{address, 64, 3, 0};
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&block), sizeof block);
    REQUIRE(stream->dispatch(kernels.index, {1, 1, 1}, of_host ? bytes : bytes.first(16), {}).ok());
    CHECK(stream->wait().code == Code::Device);
    CHECK_THAT(error_text(), ContainsSubstring(of_host ? "is not in device memory"
                                                       : "a block of 16 bytes, the code object takes 24"));
  }
}

TEST_CASE("mutant: an index far behind the end of a buffer", "[hip]") {
  HipOrders orders;
  orders.set("SEED", "1");  // the last group runs first, and its lanes have the largest index
  const OpenDevice device = open_mock_hip();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  Words y(*device, 64);
  const IndexTestBlock block{y.all().address(), ~0u, 3, 0};
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&block), sizeof block);
  REQUIRE(stream->dispatch(kernels.index, {(1 << 26) - 1, 1, 1}, bytes, {}).ok());
  CHECK(stream->wait().code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("index_test: a lane reads or writes where there is no memory"));
}

TEST_CASE("mutant: memory that is released before the work on it is submitted", "[hip]") {
  HipOrders orders;
  const OpenDevice device = open_mock_hip();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  {
    Words y(*device, 64);
    REQUIRE(kernels.write_index(*stream, y.all(), 3).ok());
  }
  CHECK(stream->wait().code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("is not in device memory"));
}
