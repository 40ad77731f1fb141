// The HIP form of the test kernel: its code objects through the backend and the mock runtime, which reads
// them as a real one would and runs the same source lane by lane.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdlib>
#include <cstring>

#include "kernels/abi/scaled_add.h"
#include "places.h"
#include "spike/backend_spike_device.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

// Makes the mock pretend to be another device while it lives.
struct PretendedArch {
  explicit PretendedArch(const char* name) { setenv("MOCK_HIP_ARCH", name, 1); }
  ~PretendedArch() { unsetenv("MOCK_HIP_ARCH"); }
};

static Status open_mock(std::unique_ptr<Device>* out) {
  DeviceOptions options;
  options.driver_library = MOCK_HIP_LIBRARY;
  Device* device = nullptr;
  GRETA_TRY(open_device("hip0", options, &device));
  out->reset(device);
  return {};
}

// The gfx target of a device that runs code for `target`, which may be a family.
static std::string device_of(const char* target) {
  for (const char* arch : {"gfx942", "gfx1030", "gfx1100", "gfx1200"})
    if (gfx_family(arch) == target) return arch;
  return target;
}

TEST_CASE("the HIP kernels of every target give the bits of the C++ kernel", "[spike]") {
  uint32_t targets = 0;
  for (const KernelRow& row : test_kernel_table()) {
    if (std::strcmp(row.backend, "hip") || !std::strstr(row.name, "scaled_add")) continue;
    const std::string full_name = device_of(row.target) + ":xnack-";
    const PretendedArch arch(full_name.c_str());
    for (const char* seed : {"0", "1", "2"}) {
      setenv("MOCK_HIP_SEED", seed, 1);
      std::unique_ptr<Device> opened;
      const Status status = open_mock(&opened);
      CAPTURE(error_text());
      REQUIRE(status.ok());
      const std::string device_arch = opened->info().arch;
      REQUIRE(device_arch == device_of(row.target));
      const KernelRow* chosen = find_test_kernel(row.name, "hip", opened->info().arch);
      REQUIRE(chosen);
      CHECK((chosen == &row || chosen->target == device_arch));  // a row for the exact target comes first
      BackendSpikeDevice device(*opened);
      check_scaled_add(device, row);
    }
    unsetenv("MOCK_HIP_SEED");
    ++targets;
  }
  if (!targets) SKIP("this build has no HIP kernels");
}

TEST_CASE("no HIP row is chosen for a target that was not compiled", "[spike]") {
  CHECK(find_test_kernel("scaled_add_spike", "hip", "gfx90") == nullptr);
  CHECK(find_test_kernel("scaled_add_spike", "hip", "gfx942:sramecc+") == nullptr);
  CHECK(find_test_kernel("scaled_add_spike", "hip", "") == nullptr);
}

TEST_CASE("without a HIP device the mock says so", "[spike]") {
  const PretendedArch arch("none");
  std::unique_ptr<Device> device;
  CHECK(open_mock(&device).code == Code::Unsupported);
}

// What the last call that the mock refused did wrong, which it says to nobody else.
static std::string fault_of_mock() {
  DynamicLibrary library;
  REQUIRE(library.open(MOCK_HIP_LIBRARY).ok());
  const auto fault = reinterpret_cast<const char* (*)()>(library.find("mock_hip_fault"));
  REQUIRE(fault);
  return fault();
}

// Runs the kernel on a device of its own, since one with a failed launch is lost. Returns what was said.
static std::string refused(const KernelCode& code, uint32_t groups,
                           uint32_t block_bytes = sizeof(ScaledAddBlock), const void* pages = nullptr) {
  std::unique_ptr<Device> opened;
  REQUIRE(open_mock(&opened).ok());
  BackendSpikeDevice device(*opened);
  ScaledAddBlock block = {};
  for (uint64_t* address : {&block.a, &block.pages, &block.page_table, &block.y})
    REQUIRE(device.allocate(64 * 4, address).ok());
  block.page_values = 64;
  if (pages) block.pages = reinterpret_cast<uint64_t>(pages);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&block), block_bytes);
  return device.run(code, groups, bytes).ok() ? "" : error_text() + (" " + fault_of_mock());
}

TEST_CASE("the mock refuses launches that a HIP runtime would refuse", "[spike]") {
  const PretendedArch arch("gfx942");
  const KernelRow* row = find_test_kernel("scaled_add_spike", "hip", "gfx942");
  if (!row) SKIP("this build has no kernels for gfx942");
  CHECK(refused(row->code, 1) == "");

  KernelCode wrong = row->code;
  wrong.group_size[0] = 128;
  CHECK_THAT(refused(wrong, 1), ContainsSubstring("a group of 128 threads, the code object allows 64"));
  wrong.group_size[0] = 32;
  CHECK_THAT(refused(wrong, 1), ContainsSubstring("a group of 32 threads, the kernel takes multiples of 64"));
  CHECK_THAT(refused(row->code, 1, 40), ContainsSubstring("a block of 40 bytes, the code object takes 48"));
  CHECK_THAT(refused(row->code, 0), ContainsSubstring("grid"));
  float on_the_host[64] = {};
  CHECK_THAT(refused(row->code, 1, sizeof(ScaledAddBlock), on_the_host),
             ContainsSubstring("address 1 of the block is not in device memory"));
  wrong = row->code;
  wrong.name = "no_such_kernel";
  CHECK_THAT(refused(wrong, 1), ContainsSubstring("no kernel no_such_kernel"));
  const KernelRow* other = find_test_kernel("scaled_add_spike", "hip", "gfx1100");
  if (other)
    CHECK_THAT(refused(other->code, 1),
               ContainsSubstring(std::string("a code object for ") + other->target + " on a gfx942"));
}

TEST_CASE("fresh memory of the mock is poisoned and its bounds are known", "[spike]") {
  std::unique_ptr<Device> opened;
  REQUIRE(open_mock(&opened).ok());
  BackendSpikeDevice device(*opened);
  uint64_t address = 0;
  REQUIRE(device.allocate(16, &address).ok());
  uint32_t words[4];
  REQUIRE(device.read(address, words, 16).ok());
  for (uint32_t word : words) CHECK(word == 0xcdcdcdcd);
  CHECK_FALSE(device.read(address, words, 17).ok());
  CHECK_FALSE(device.write(address + 4, words, 16).ok());
}
