#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <string>

#include "support/device_kernels.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a device describes itself", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const DeviceInfo& info = device->info();
  CHECK(strlen(info.name) > 0);
  CHECK(strlen(info.backend) > 0);
  CHECK(strlen(info.arch) > 0);
  CHECK(strlen(info.driver) > 0);
  CHECK(info.memory_bytes > 0);
  CHECK(info.max_allocation_bytes > 0);
  CHECK(info.shared_bytes >= 16 << 10);
  CHECK(info.unit_count >= 1);
  CHECK(info.wave_min <= info.wave_max);
  CHECK(device->memory_free() <= info.memory_bytes);
}

TEST_CASE("buffers of all kinds are made and released", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  for (const Memory memory : {Memory::Device, Memory::Upload, Memory::Readback}) {
    for (const uint64_t bytes : {1ull, 4096ull, 100000ull, 3ull << 20}) {
      Buffer buffer;
      REQUIRE(device->allocate(bytes, memory, &buffer).ok());
      CHECK(buffer.handle);
      CHECK(buffer.bytes == bytes);
      CHECK(buffer.address % 256 == 0);
      if (memory != Memory::Device) {
        REQUIRE(buffer.mapped);
        memset(buffer.mapped, 7, bytes);
      }
      device->release(buffer);
      CHECK(!buffer.handle);
      CHECK(buffer.bytes == 0);
      device->release(buffer);  // nothing happens
    }
  }
}

TEST_CASE("an allocation that cannot be is refused in words and changes nothing", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  Buffer buffer;
  buffer.bytes = 77;
  for (const uint64_t bytes : {uint64_t(1) << 41, ~uint64_t(0) - 8}) {
    clear_error_text();
    CHECK(device->allocate(bytes, Memory::Device, &buffer).code == Code::Memory);
    CHECK_THAT(error_text(), ContainsSubstring(std::to_string(bytes)));
    CHECK(buffer.bytes == 77);
  }
  CHECK(device->allocate(0, Memory::Device, &buffer).code == Code::Argument);
  CHECK(buffer.bytes == 77);
  REQUIRE(device->allocate(64, Memory::Device, &buffer).ok());
  device->release(buffer);
}

TEST_CASE("words go to the device and come back", "[runtime]") {
  FOR_EACH_DEVICE(which);
  if (!which.computes) return;
  const OpenDevice device = which.open();
  std::vector<uint32_t> words(10007);
  for (size_t i = 0; i < words.size(); ++i) words[i] = uint32_t(i * 2654435761u);
  Words memory(*device, words.size() + 5);
  write_words(*device, memory.slice(3, words.size()), words);
  CHECK(read_words(*device, memory.slice(3, words.size())) == words);
}

TEST_CASE("imported host memory is read where it lies", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  if (which.computes && !device->info().imports_host) return;
  auto* pages = static_cast<uint32_t*>(map_pages(8192));
  for (uint32_t i = 0; i < 2048; ++i) pages[i] = i ^ 0x5a5a;
  protect_pages(pages, 8192, Protection::Read);
  {
    DeviceMemory memory;
    REQUIRE(memory.import_host(*device, pages, 8192).ok());
    if (device->info().host_functions)
      CHECK(memory.buffer().address == reinterpret_cast<uint64_t>(pages));
    if (which.computes) {
      const std::vector<uint32_t> words = read_words(*device, memory.all());
      CHECK(memcmp(words.data(), pages, 8192) == 0);
      const auto stream = new_stream(*device);
      CHECK(!stream->fill(memory.all(), 1).ok());
      CHECK_THAT(error_text(), ContainsSubstring("read-only"));
      DeviceMemory part;  // its bytes are not whole pages
      REQUIRE(part.import_host(*device, pages + 100, 6000).ok());
      CHECK(memcmp(read_words(*device, part.slice(16, 4000)).data(), pages + 104, 4000) == 0);
    }
    Buffer none;
    CHECK(device->import_host(nullptr, 10, &none).code == Code::Argument);
  }
  CHECK(pages[5] == (5 ^ 0x5a5a));  // the pages were released, but not unmapped
  unmap_pages(pages, 8192);
}

TEST_CASE("devices write to pages of the process that they share", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice first = which.open(), second = which.open();
  MappedPages memory;
  REQUIRE(memory.map(8192));
  DeviceMemory there, here;
  if (!first->info().shares_host) {
    CHECK(there.share_host(*first, memory.pages(), 8192).code == Code::Unsupported);
    return;
  }
  REQUIRE(there.share_host(*first, memory.pages(), 8192).ok());
  REQUIRE(here.share_host(*second, memory.pages(), 8192).ok());
  CHECK(there.buffer().mapped == memory.pages());
  const auto stream = new_stream(*first);
  REQUIRE(stream->fill(there.slice(4, 8188), 99).ok());
  REQUIRE(stream->wait().ok());
  CHECK(static_cast<uint32_t*>(memory.pages())[0] == 0);
  CHECK(static_cast<uint32_t*>(memory.pages())[2047] == 99);
  CHECK(read_words(*second, here.all())[1] == 99);
}

TEST_CASE("copies and fills outside a buffer are refused with the numbers", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  Words a(*device, 100), b(*device, 50);
  const auto stream = new_stream(*device);
  CHECK(stream->copy(b.all(), a.all()).code == Code::Argument);
  CHECK_THAT(error_text(), ContainsSubstring("400") && ContainsSubstring("200"));
  CHECK(stream->copy(b.slice(40, 20), a.slice(0, 20)).code == Code::Argument);
  CHECK_THAT(error_text(), ContainsSubstring("200"));
  CHECK(stream->copy(a.slice(0, 20), a.slice(19, 20)).code == Code::Argument);
  CHECK_THAT(error_text(), ContainsSubstring("overlap"));
  CHECK(stream->fill(a.slice(100, 1), 0).code == Code::Argument);
  CHECK(stream->fill(a.memory.slice(~uint64_t(0) - 3, 8), 0).code == Code::Argument);
  CHECK(stream->fill(a.memory.slice(2, 4), 0).code == Code::Argument);
  CHECK(stream->fill(a.memory.slice(0, 6), 0).code == Code::Argument);
  CHECK(stream->fill(Slice{}, 0).code == Code::Argument);
  const Buffer empty;
  CHECK(stream->copy({&empty, 0, 4}, a.slice(0, 1)).code == Code::Argument);
  CHECK(stream->wait().ok());  // nothing of it was recorded
}
