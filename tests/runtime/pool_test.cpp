#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>

#include "support/device_kernels.h"
#include "support/limited_device.h"

using namespace greta;

TEST_CASE("a pool hands out aligned slices of shared buffers", "[runtime]") {
  const OpenDevice device = open_null();
  Pool pool(*device, 10000);
  Slice slice[5];
  REQUIRE(pool.take(100, &slice[0]).ok());
  REQUIRE(pool.take(5000, &slice[1]).ok());
  CHECK(slice[0].buffer == slice[1].buffer);
  CHECK(slice[1].offset == 256);
  CHECK(slice[1].bytes == 5000);
  CHECK(pool.allocated_bytes() == 10000);

  REQUIRE(pool.take(20001, &slice[2]).ok());  // it gets a padded buffer of its own
  CHECK(slice[2].offset == 0);
  CHECK(slice[2].buffer->bytes == 20224);
  REQUIRE(pool.take(1, &slice[3]).ok());  // the first buffer is still being filled
  CHECK(slice[3].buffer == slice[0].buffer);
  CHECK(slice[3].offset == 256 + 5120);

  REQUIRE(pool.take(9000, &slice[4]).ok());  // it does not fit there any more
  CHECK(slice[4].buffer != slice[0].buffer);
  CHECK(pool.allocated_bytes() == 10000 + 20224 + 10000);
  for (const Slice& taken : slice) CHECK(taken.address() % 256 == 0);
  CHECK(pool.take(0, &slice[0]).code == Code::Argument);
  CHECK(pool.take(~uint64_t(0), &slice[0]).code == Code::Argument);
}

TEST_CASE("a pool gives each slice a buffer that ends with it, on a device that wants so", "[runtime]") {
  const OpenDevice inner = open_null();
  greta::test::LimitedDevice device(*inner, 20000);
  Pool pool(device, 10000);
  Slice slice[3];
  for (const uint64_t bytes : {100, 5000, 15000}) {
    Slice& taken = slice[bytes / 5000 % 3];
    REQUIRE(pool.take(bytes, &taken).ok());
    CHECK(taken.offset == 0);
    CHECK(taken.bytes == bytes);
    CHECK(taken.buffer->bytes == bytes);
  }
  CHECK(pool.allocated_bytes() == 20100);
}

TEST_CASE("a pool that knows what will be taken allocates that and no more", "[runtime]") {
  const OpenDevice device = open_null();
  const std::vector<uint64_t> slices = {100, 5000, 20001, 4000, 700, 9000, 1, 30000};
  uint64_t padded = 0;
  for (const uint64_t bytes : slices) padded += round_up(bytes, 256);
  Pool pool(*device, 10000, slices);
  std::vector<Slice> taken(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) REQUIRE(pool.take(slices[i], &taken[i]).ok());
  CHECK(pool.allocated_bytes() == padded);
  CHECK(taken[3].buffer == taken[0].buffer);  // the slice between them has a buffer of its own
  CHECK(taken[4].buffer != taken[0].buffer);
  CHECK(taken[5].buffer == taken[4].buffer);
  CHECK(taken[6].buffer != taken[4].buffer);
}

TEST_CASE("a pool survives a failed allocation and gives all back", "[runtime]") {
  NullOptions options;
  options.memory_bytes = 5000;
  const OpenDevice device = open_null(options);
  {
    Pool pool(*device, 2100);
    Slice first, second;
    REQUIRE(pool.take(1000, &first).ok());
    CHECK(pool.take(4000, &second).code == Code::Memory);
    CHECK(pool.allocated_bytes() == 2100);
    CHECK(pool.take(900, &second).ok());
    CHECK(second.buffer == first.buffer);
  }
  CHECK(device->memory_free() == 5000);
}

namespace {

struct Source {
  uint64_t calls = 0, fail_at = 0;
  static Status fill(void* context, uint64_t offset, void* host, uint64_t bytes) {
    Source& self = *static_cast<Source*>(context);
    if (++self.calls == self.fail_at) return fail(Code::File, "no more");
    for (uint64_t i = 0; i < bytes; ++i) static_cast<uint8_t*>(host)[i] = uint8_t((offset + i) * 7 % 251);
    return {};
  }
};

}  // namespace

TEST_CASE("staging brings bytes to the device in pieces", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  Words target(*device, 2600);
  Staging staging;
  Source source;
  CHECK(staging.upload(target.all(), Source::fill, &source).code == Code::Argument);
  REQUIRE(staging.open(*device, 1000).ok());
  REQUIRE(staging.upload(target.memory.slice(8, 10001), Source::fill, &source).ok());
  CHECK(source.calls == 11);
  REQUIRE(staging.finish().ok());
  REQUIRE(staging.finish().ok());
  if (which.computes) {
    const std::vector<uint32_t> words = read_words(*device, target.slice(2, 2500));
    const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
    uint32_t wrong = 0;
    for (uint64_t i = 0; i < 10000; ++i) wrong += bytes[i] != i * 7 % 251;
    CHECK(wrong == 0);
  }
  source = {0, 3};
  CHECK(staging.upload(target.memory.slice(0, 5000), Source::fill, &source).code == Code::File);
  CHECK(source.calls == 3);
  CHECK(staging.upload(target.memory.slice(10399, 2), Source::fill, &source).code == Code::Argument);
  CHECK(staging.finish().ok());
}
