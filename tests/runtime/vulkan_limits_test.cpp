// Vulkan devices that hang, whose memory is in two heaps, or whose matrices are wrong, behind a libvulkan
// with planted faults.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>

#include "support/device_kernels.h"
#include "support/vulkan_faults.h"
#include "tune/matrices.h"
#include "tune/tune.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("vulkan: a device that hangs is lost after the time limit, and opened again", "[runtime][vulkan]") {
  Faults faults;
  DeviceOptions options;
  options.wait_limit_ms = 50;
  Device* opened = nullptr;
  REQUIRE(faults.open(&opened, ~0u, nullptr, options).ok());
  std::unique_ptr<Device> device(opened);
  {
    const TestKernels kernels(*device);
    Words y(*device, 64);
    OwnedEvent event(*device);
    const auto stream = new_stream(*device), other = new_stream(*device);
    REQUIRE(kernels.write_index(*stream, y.all(), 3).ok());
    REQUIRE(stream->signal(event.event).ok());
    faults.hang();
    CHECK(stream->wait(event.event).code == Code::Device);
    CHECK_THAT(error_text(), ContainsSubstring("was lost (a wait without end"));
    CHECK(other->fill(y.all(), 1).code == Code::Device);
    CHECK(device->memory_free() == 0);
    Buffer buffer;
    CHECK(device->allocate(64, Memory::Device, &buffer).code == Code::Device);
  }  // nothing of it is freed, since a driver may wait for the work of a GPU that hangs
  device.reset();
  faults.none();
  const OpenDevice again = faults.opened();
  Words a(*again, 10);
  write_words(*again, a.all(), std::vector<uint32_t>(10, 4));
  CHECK(read_words(*again, a.all())[9] == 4);
}

TEST_CASE("vulkan: a lost AMD GPU comes with advice for its kernel", "[runtime][vulkan]") {
  Faults faults;
  DeviceOptions options;
  options.wait_limit_ms = 20;
  Device* opened = nullptr;
  faults.hide("other makers");
  REQUIRE(faults.open(&opened, ~0u, nullptr, options).ok());
  const std::unique_ptr<Device> device(opened);
  const auto stream = new_stream(*device);
  Words y(*device, 64);
  REQUIRE(stream->fill(y.all(), 1).ok());
  faults.hang();
  CHECK(stream->wait().code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("dmesg"));
}

TEST_CASE("vulkan: all heaps of memory that is the host's count, and the second serves too",
          "[runtime][vulkan]") {
  constexpr uint64_t kGiB = uint64_t(1) << 30;
  Faults faults;
  faults.hide("processor one heap");
  const OpenDevice device = faults.opened();
  const DeviceInfo& info = device->info();
  CHECK(info.unified_memory);
  CHECK(info.memory_bytes == 3 * kGiB);
  CHECK(info.max_allocation_bytes <= 2 * kGiB);
  CHECK(info.reserve_bytes == 3 * kGiB / 16);
  CHECK(device->memory_free() <= std::min(3 * kGiB, memory_available_bytes() + kGiB / 4));
  if (memory_available_bytes() > 4 * kGiB) CHECK(device->memory_free() > 2 * kGiB);
  faults.second();
  Buffer buffer;
  faults.fail("vkAllocateMemory", 0, kOutOfDeviceMemory);  // of the first heap
  REQUIRE(device->allocate(12345, Memory::Device, &buffer).ok());
  CHECK(buffer.mapped);
  CHECK(faults.second() == 1);
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  Words back(*device, 64, Memory::Readback);
  REQUIRE(kernels.write_index(*stream, {&buffer, 0, 256}, 3).ok());
  REQUIRE(stream->barrier().ok());
  REQUIRE(stream->copy(back.all(), {&buffer, 0, 256}).ok());
  REQUIRE(stream->wait().ok());
  CHECK(static_cast<const uint32_t*>(back.memory.buffer().mapped)[63] == 189);
  device->release(buffer);
  faults.none();
  faults.hide("processor one heap host's memory");  // a card with memory of its own has the local heap
  CHECK(faults.opened()->info().memory_bytes == 2 * kGiB);
}

TEST_CASE("vulkan: cooperative matrices that multiply wrong are not used", "[runtime][vulkan]") {
  Faults faults;
  faults.hide("no matrices");
  const OpenDevice device = faults.opened();
  const RowFilter filter = {&device->info()};
  const auto on_matrices = [](const KernelRow* row) { return strstr(row->name, "_cm1") != nullptr; };
  const auto rows = candidates(filter);
  std::vector<const KernelRow*> matrix_rows;
  for (const KernelRow& row : rows)
    if (on_matrices(&row) && usable(row, filter)) matrix_rows.push_back(&row);
  if (matrix_rows.empty()) SKIP("no kernels for cooperative matrices");
  RefusedKernels refused;
  bool right = true;
  REQUIRE(check_matrices(*device, &refused, &right).ok());
  CHECK(!right);
  CHECK_THAT(error_text(), ContainsSubstring("multiplies matrices wrong: the products of products_cm1"));
  for (const KernelRow* row : matrix_rows) CHECK(refused.has(*row));
}
