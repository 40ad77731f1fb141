// Failures of a Vulkan driver, which a libvulkan with planted faults makes, and pipelines that are kept on
// disk.
#include <unistd.h>

#include <algorithm>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/device_kernels.h"
#include "support/vulkan_faults.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

TEST_CASE("vulkan: a device that lacks something says what", "[runtime][vulkan]") {
  Faults faults;
  Device* device = nullptr;
  faults.hide("shaderInt64 timelineSemaphore");
  CHECK(faults.open(&device).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("device vulkan0") && ContainsSubstring("lacks shaderInt64") &&
                               ContainsSubstring("timelineSemaphore"));
  faults.hide("version");
  CHECK(faults.open(&device).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("Vulkan 1.2, 1.3 is needed"));
  faults.hide("");
  faults.fail("vkCreateDevice", 0, kInitializationFailed);
  CHECK(faults.open(&device).code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("vkCreateDevice: VK_ERROR_INITIALIZATION_FAILED"));
  faults.fail("vkQueueSubmit2", 0, kDeviceLost);  // the device opens but cannot work
  CHECK(faults.open(&device).code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("does not work"));
  CHECK(!device);
}

TEST_CASE("vulkan: no loader, no driver, no such device", "[runtime][vulkan]") {
  DeviceOptions options;
  options.driver_library = "/nonexistent/libvulkan.so";
  Device* device = nullptr;
  const Status status = open_device("vulkan0", options, &device);
  CHECK(status.code == Code::Unsupported);
  if (strstr(error_text(), "no device 'vulkan0'")) SKIP("this build has no Vulkan backend");
  CHECK_THAT(error_text(),
             ContainsSubstring("no Vulkan loader") && ContainsSubstring("/nonexistent/libvulkan.so"));
  if (!is_there("vulkan")) return;
  CHECK(open_device("vulkan99", {}, &device).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("device vulkan99") && ContainsSubstring("numbered from 0"));
  CHECK(!device);
}

TEST_CASE("vulkan: memory that runs out is a status, and the device goes on", "[runtime][vulkan]") {
  Faults faults;
  const OpenDevice device = faults.opened();
  Buffer buffer;
  for (const int result : {kOutOfDeviceMemory, kOutOfHostMemory}) {
    faults.fail("vkAllocateMemory", 0, result);
    CHECK(device->allocate(12345, Memory::Device, &buffer).code == Code::Memory);
    CHECK_THAT(error_text(), ContainsSubstring("12345 bytes") && ContainsSubstring("VK_ERROR_OUT_OF") &&
                                 ContainsSubstring("seemed to be free (another program may use it)"));
    CHECK(!buffer.handle);
  }
  faults.none();
  REQUIRE(device->allocate(12345, Memory::Device, &buffer).ok());
  device->release(buffer);
}

TEST_CASE("vulkan: a shader that the driver refuses is an error of that kernel", "[runtime][vulkan]") {
  Faults faults;
  const OpenDevice device = faults.opened();
  Kernel kernel;
  faults.fail("vkCreateComputePipelines", 0, kInitializationFailed);
  CHECK(device->load(test_kernel_code(*device, "add"), &kernel).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("refuses the shader add_test"));
  KernelCode damaged = test_kernel_code(*device, "add");
  --damaged.code.last;
  CHECK(device->load(damaged, &kernel).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("add_test: its") && ContainsSubstring("code are damaged"));
  KernelCode large = test_kernel_code(*device, "add");
  large.group_size[0] = 1 << 20;
  CHECK(device->load(large, &kernel).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("1048576 threads"));
  faults.none();
  const TestKernels kernels(*device);
}

TEST_CASE("vulkan: a lost device fails every call, can be closed and opened again", "[runtime][vulkan]") {
  Faults faults;
  for (const char* function : {"vkQueueSubmit2", "vkWaitSemaphores", "vkEndCommandBuffer"}) {
    INFO(function);
    const OpenDevice device = faults.opened();
    const TestKernels kernels(*device);
    Words a(*device, 1000);
    OwnedEvent event(*device);
    OwnedGraph owned{*device, {}};
    const auto stream = new_stream(*device), other = new_stream(*device);
    REQUIRE(stream->begin_capture().ok());
    REQUIRE(kernels.write_index(*stream, a.all(), 2).ok());
    REQUIRE(stream->end_capture(&owned.graph).ok());
    REQUIRE(stream->replay(owned.graph).ok());
    REQUIRE(stream->wait().ok());
    faults.fail(function, 1, kDeviceLost);
    Status status;
    for (uint32_t i = 0; i < 3 && status.ok(); ++i) {
      status = stream->replay(owned.graph);
      if (status.ok()) status = stream->fill(a.all(), i);
      if (status.ok()) status = stream->wait();
    }
    CHECK(status.code == Code::Device);
    CHECK_THAT(error_text(), ContainsSubstring(function) && ContainsSubstring("VK_ERROR_DEVICE_LOST"));
    faults.none();  // the driver would work again, but is not called any more
    Buffer buffer;
    Kernel kernel;
    Stream* none = nullptr;
    Event no_event;
    CHECK(device->allocate(64, Memory::Device, &buffer).code == Code::Device);
    CHECK(device->load(test_kernel_code(*device, "add"), &kernel).code == Code::Device);
    CHECK(device->create_stream(&none).code == Code::Device);
    CHECK(device->create_event(&no_event).code == Code::Device);
    for (const auto* each : {&stream, &other}) {
      CHECK((*each)->submit().code == Code::Device);
      CHECK((*each)->wait().code == Code::Device);
      CHECK((*each)->wait(event.event).code == Code::Device);
      CHECK((*each)->replay(owned.graph).code == Code::Device);
      CHECK_THAT(error_text(),
                 ContainsSubstring(std::string("was lost (") + function + ": VK_ERROR_DEVICE_LOST)"));
    }
  }
  const OpenDevice again = faults.opened();
  Words a(*again, 10);
  write_words(*again, a.all(), std::vector<uint32_t>(10, 4));
  CHECK(read_words(*again, a.all())[9] == 4);
}

TEST_CASE("vulkan: a driver without memory for a submission is an error, not a wait for ever",
          "[runtime][vulkan]") {
  Faults faults;
  for (const int result : {kOutOfHostMemory, kOutOfDeviceMemory})
    for (const int passing : {0, 1, 2}) {
      INFO(result << " after " << passing);
      const OpenDevice device = faults.opened();
      Words a(*device, 1000);
      OwnedEvent event(*device);
      const auto stream = new_stream(*device), other = new_stream(*device);
      faults.fail("vkQueueSubmit2", passing, result);
      Status status;
      for (uint32_t i = 0; i < 4 && status.ok(); ++i) {
        status = stream->fill(a.all(), i);
        if (status.ok()) status = stream->signal(event.event);
        if (status.ok()) status = other->wait_for(event.event);
        if (status.ok()) status = other->submit();
        if (status.ok()) status = stream->wait();
      }
      CHECK(status.code == Code::Memory);
      CHECK_THAT(error_text(), ContainsSubstring("vkQueueSubmit2"));
      faults.none();
      CHECK(stream->wait().code == Code::Device);
      CHECK_THAT(error_text(), ContainsSubstring("was lost (vkQueueSubmit2: VK_ERROR_OUT_OF"));
      CHECK(other->wait().code == Code::Device);
    }
  faults.opened();
}

TEST_CASE("vulkan: a gate that cannot be opened is an error, and is opened later", "[runtime][vulkan]") {
  Faults faults;
  const OpenDevice device = faults.opened();
  const auto stream = new_stream(*device);
  DeviceMemory read;
  REQUIRE(read.allocate(*device, 256, Memory::Readback).ok());
  REQUIRE(stream->wait_for_host(3).ok());
  REQUIRE(stream->fill(read.all(), 5).ok());
  REQUIRE(stream->submit().ok());
  faults.fail("vkSignalSemaphore", 0, kOutOfHostMemory);
  CHECK(stream->let_go(3).code == Code::Memory);
  CHECK_THAT(error_text(), ContainsSubstring("vkSignalSemaphore"));
  faults.none();
  REQUIRE(stream->let_go(3).ok());
  REQUIRE(stream->wait().ok());
  CHECK(*static_cast<uint32_t*>(read.buffer().mapped) == 5);
}

TEST_CASE("vulkan: a replayed graph is one submission of one command buffer", "[runtime][vulkan]") {
  Faults faults;
  const OpenDevice device = faults.opened();
  const TestKernels kernels(*device);
  Words a(*device, 1000);
  OwnedEvent event(*device, false);
  for (const uint32_t parts : {1u, 3u}) {
    OwnedGraph owned{*device, {}};
    const auto stream = new_stream(*device);
    REQUIRE(stream->begin_capture().ok());
    for (uint32_t i = 0; i < parts; ++i) {
      if (i) REQUIRE(stream->split().ok());
      if (i) REQUIRE(stream->barrier().ok());
      REQUIRE(kernels.write_index(*stream, a.all(), 2 + i).ok());
    }
    REQUIRE(stream->end_capture(&owned.graph).ok());
    REQUIRE(stream->replay(owned.graph).ok());
    REQUIRE(stream->wait().ok());  // the first replay fills a chain's cells
    for (uint32_t step = 0; step < 3; ++step) {
      faults.submits();
      REQUIRE(stream->barrier().ok());
      REQUIRE(stream->replay(owned.graph).ok());
      REQUIRE(stream->signal(event.event).ok());
      REQUIRE(stream->wait(event.event).ok());
      CHECK(faults.submits() == Faults::Submits{int(parts), int(parts)});
    }
    CHECK(read_words(*device, a.all())[999] == 999 * (1 + parts));
    faults.submits();
    REQUIRE(stream->replay(owned.graph).ok());
    REQUIRE(stream->fill(a.all(), 1).ok());
    REQUIRE(stream->wait().ok());
    CHECK(faults.submits() ==
          Faults::Submits{int(parts), int(parts) + 1});  // later work goes with the last part
  }
}

namespace {

// A cache folder of this process, and device vulkan0 opened with it.
struct CacheFolder {
  const fs::path top = fs::temp_directory_path() / ("greta-cache-" + std::to_string(::getpid()));
  const fs::path folder = top / "not" / "there";
  const std::string name = folder.string();
  std::string log;  // the messages of the last use() about compiled kernels

  CacheFolder() { fs::remove_all(top); }
  ~CacheFolder() { fs::remove_all(top); }
  // Opens the device, runs a kernel and closes the device.
  void use() {
    DeviceOptions options;
    options.cache_folder = name.c_str();
    log.clear();
    options.log = {[](void* to, uint32_t level, const char* text) {
                     if (!strstr(text, "compiled kernels")) return;
                     const char* const kind = level == uint32_t(LogLevel::Info) ? "info: " : "warning: ";
                     *static_cast<std::string*>(to) += kind + std::string(text) + "\n";
                   },
                   &log};
    Device* opened = nullptr;
    REQUIRE(open_device("vulkan0", options, &opened).ok());
    const std::unique_ptr<Device> device(opened);
    const TestKernels kernels(*device);
    const auto stream = new_stream(*device);
    Words a(*device, 70);
    REQUIRE(kernels.write_index(*stream, a.all(), 3).ok());
    REQUIRE(stream->wait().ok());
    CHECK(read_words(*device, a.all())[69] == 3 * 69);
  }
  long messages() const { return std::count(log.begin(), log.end(), '\n'); }
};

std::string read_whole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

TEST_CASE("vulkan: compiled pipelines are kept on disk, and a bad file is no file", "[runtime][vulkan]") {
  if (!is_there("vulkan")) SKIP("no Vulkan device: " << error_text());
  CacheFolder cache;
  cache.use();
  CHECK(cache.log.empty());
  std::vector<fs::path> files, notes;  // notes: that chains were right
  for (const auto& entry : fs::directory_iterator(cache.folder))
    (entry.path().string().find(".chain-") == std::string::npos ? files : notes).push_back(entry.path());
  REQUIRE(files.size() == 1);  // no temporary file is left
  REQUIRE(notes.size() <= 1);
  const std::string good = read_whole(files[0]);
  CHECK(good.size() > 72);
  const auto with = [&](size_t at, char change) {
    std::string bytes = good;
    bytes[at] = char(bytes[at] ^ change);
    return bytes;
  };
  // One byte of the magic, driver, cache, device, version, size, checksum or data is wrong; the file is cut,
  // longer or empty.
  std::vector<std::string> bad = {good.substr(0, good.size() - 1), good + "x", good.substr(0, 40), "",
                                  with(good.size() - 1, 1)};
  for (const size_t at : {0, 9, 30, 44, 50, 57, 66}) bad.push_back(with(at, 1));
  for (const std::string& bytes : bad) {
    std::ofstream(files[0], std::ios::binary | std::ios::trunc) << bytes;
    cache.use();
    CHECK_THAT(cache.log, ContainsSubstring("info: compiled kernels are made anew: '" + files[0].string() +
                                            "' is damaged"));
    CHECK(cache.messages() == 1);
    CHECK(read_whole(files[0]).substr(0, 40) == good.substr(0, 40));
    CHECK(read_whole(files[0]) != bytes);
  }
  const auto written = fs::last_write_time(files[0]);
  cache.use();  // all comes out of the file, so it stays as it is
  CHECK(fs::last_write_time(files[0]) == written);
  CHECK(cache.log.empty());
  fs::remove_all(cache.folder);
  std::ofstream(cache.folder) << "a file in the folder's place";
  cache.use();
  CHECK_THAT(cache.log, ContainsSubstring("warning: compiled kernels are not kept") &&
                            ContainsSubstring(files[0].string()));
  CHECK(cache.messages() == 1);
}
