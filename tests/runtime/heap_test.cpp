// Heap: slices come and go, lie apart, and their memory is given back to the device.
#include "runtime/heap.h"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <random>

#include "support/devices.h"

using namespace greta;

constexpr uint64_t kAnyRoom = ~uint64_t(0);

TEST_CASE("heap: slices lie apart, and all memory but a chunk goes back", "[runtime]") {
  const OpenDevice device = open_null();
  Heap heap(*device, Memory::Device);
  std::mt19937 random(3);
  std::map<uint64_t, Slice> taken;  // by address
  uint64_t padded = 0;
  const auto check_apart = [&] {
    uint64_t end = 0;
    for (const auto& [address, slice] : taken) {
      REQUIRE(address >= end);
      end = address + slice.bytes;
      REQUIRE(slice.offset + slice.bytes <= slice.buffer->bytes);
    }
  };
  for (int round = 0; round < 2000; ++round) {
    if (taken.empty() || random() % 5 < 3) {
      const uint64_t bytes = 1 + random() % (round % 100 == 0 ? 40u << 20 : 100000);
      Slice slice;
      REQUIRE(heap.take(bytes, kAnyRoom, &slice).ok());
      REQUIRE(slice.bytes == bytes);
      REQUIRE(slice.offset % Heap::kAlignment == 0);
      REQUIRE(taken.emplace(slice.address(), slice).second);
      padded += round_up(bytes, Heap::kAlignment);
    } else {
      const auto one = std::next(taken.begin(), long(random() % taken.size()));
      padded -= round_up(one->second.bytes, Heap::kAlignment);
      heap.give_back(one->second);
      taken.erase(one);
    }
    REQUIRE(heap.taken_bytes() == padded);
    REQUIRE(heap.allocated_bytes() >= padded);
    if (round % 50 == 0) check_apart();
  }
  check_apart();
  for (const auto& [address, slice] : taken) heap.give_back(slice);
  CHECK(heap.taken_bytes() == 0);
  CHECK(heap.allocated_bytes() <= Heap::kLastChunkBytes);
  const uint64_t kept = heap.allocated_bytes();
  Slice again;
  REQUIRE(
      heap.take(kept > Heap::kLastChunkBytes / 4 ? Heap::kLastChunkBytes / 4 : kept, kAnyRoom, &again).ok());
  CHECK(heap.allocated_bytes() == kept);  // neighbours that were given back are one place again
}

TEST_CASE("heap: within a room, and sizes that cannot be", "[runtime]") {
  const OpenDevice device = open_null();
  Heap heap(*device, Memory::Device);
  Slice slice;
  CHECK(heap.take(0, kAnyRoom, &slice).code == Code::Argument);
  CHECK(heap.take(~uint64_t(0), kAnyRoom, &slice).code == Code::Argument);
  CHECK(heap.take(1000, 1000, &slice).code == Code::Memory);  // 1024 with its padding
  CHECK(heap.allocated_bytes() == 0);
  REQUIRE(heap.take(1000, 5000, &slice).ok());
  CHECK(heap.allocated_bytes() == 5000);
  REQUIRE(heap.take(3000, 0, &slice).ok());
  CHECK(heap.take(3000, 0, &slice).code == Code::Memory);
  heap.give_back({});
  heap.give_back({slice.buffer, slice.offset + 1, 4});  // not a slice of the heap
  CHECK(heap.taken_bytes() == 1024 + 3072);
}

TEST_CASE("heap: a device's failure changes nothing", "[runtime]") {
  const OpenDevice device = open_null({.fail_allocation = 2});
  Heap heap(*device, Memory::Device);
  Slice first, second;
  REQUIRE(heap.take(100, kAnyRoom, &first).ok());
  CHECK(heap.take(20u << 20, kAnyRoom, &second).code == Code::Memory);
  CHECK(heap.allocated_bytes() == Heap::kFirstChunkBytes);
  CHECK(heap.take(20u << 20, kAnyRoom, &second).ok());
  CHECK(heap.allocated_bytes() == Heap::kFirstChunkBytes + (20u << 20));
  heap.give_back(second);
  CHECK(heap.allocated_bytes() == Heap::kFirstChunkBytes);
}
