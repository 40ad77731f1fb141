// The HIP form of the test kernel: its code objects through the mock runtime, which reads them as a
// real one would and runs the same source lane by lane.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <cstring>

#include "kernels/abi/scaled_add.h"
#include "places.h"
#include "spike/hip_device.h"

using namespace greta;

// Makes the mock pretend to be another device while it lives.
struct PretendedArch {
  explicit PretendedArch(const char* name) { setenv("MOCK_HIP_ARCH", name, 1); }
  ~PretendedArch() { unsetenv("MOCK_HIP_ARCH"); }
};

static bool contains(const char* text, const char* part) { return std::strstr(text, part) != nullptr; }

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
      HipSpikeDevice device;
      CAPTURE(error_text());
      REQUIRE(device.open(MOCK_HIP_LIBRARY).ok());
      REQUIRE(device.arch() == device_of(row.target));
      const KernelRow* chosen = find_test_kernel(row.name, "hip", device.arch().c_str());
      REQUIRE(chosen);
      CHECK((chosen == &row || chosen->target == device.arch()));  // a row for the exact target comes first
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
  HipSpikeDevice device;
  CHECK(device.open(MOCK_HIP_LIBRARY).code == Code::Unsupported);
}

TEST_CASE("the mock refuses launches that a HIP runtime would refuse", "[spike]") {
  const PretendedArch arch("gfx942");
  const KernelRow* row = find_test_kernel("scaled_add_spike", "hip", "gfx942");
  if (!row) SKIP("this build has no kernels for gfx942");
  HipSpikeDevice device;
  REQUIRE(device.open(MOCK_HIP_LIBRARY).ok());

  ScaledAddBlock block = {};
  for (uint64_t* address : {&block.a, &block.pages, &block.page_table, &block.y})
    REQUIRE(device.allocate(64 * 4, address).ok());
  block.count = 0;
  block.page_values = 64;
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&block), sizeof block);
  REQUIRE(device.run(row->code, 1, bytes).ok());

  KernelCode wrong = row->code;
  wrong.group_size[0] = 128;
  CHECK_FALSE(device.run(wrong, 1, bytes).ok());
  CHECK(contains(error_text(), "a group of 128 threads, the code object allows 64"));
  wrong.group_size[0] = 32;
  CHECK_FALSE(device.run(wrong, 1, bytes).ok());
  CHECK(contains(error_text(), "a group of 32 threads, the kernel takes multiples of 64"));

  CHECK_FALSE(device.run(row->code, 1, bytes.first(40)).ok());
  CHECK(contains(error_text(), "a block of 40 bytes, the code object takes 48"));
  CHECK_FALSE(device.run(row->code, 0, bytes).ok());
  CHECK(contains(error_text(), "an empty grid"));

  ScaledAddBlock host_address = block;
  float on_the_host[64] = {};
  host_address.pages = reinterpret_cast<uint64_t>(on_the_host);
  CHECK_FALSE(device.run(row->code, 1, {reinterpret_cast<const uint8_t*>(&host_address), sizeof block}).ok());
  CHECK(contains(error_text(), "address 1 of the block is not in device memory"));

  wrong = row->code;
  wrong.name = "no_such_kernel";
  CHECK_FALSE(device.run(wrong, 1, bytes).ok());
  CHECK(contains(error_text(), "no kernel no_such_kernel"));

  const KernelRow* other = find_test_kernel("scaled_add_spike", "hip", "gfx1100");
  if (other) {
    CHECK_FALSE(device.run(other->code, 1, bytes).ok());
    const std::string wanted = std::string("a code object for ") + other->target + " on a gfx942";
    CHECK(contains(error_text(), wanted.c_str()));
  }
  REQUIRE(device.run(row->code, 1, bytes).ok());  // and it still works
}

TEST_CASE("fresh memory of the mock is poisoned and its bounds are known", "[spike]") {
  HipSpikeDevice device;
  REQUIRE(device.open(MOCK_HIP_LIBRARY).ok());
  uint64_t address = 0;
  REQUIRE(device.allocate(16, &address).ok());
  uint32_t words[4];
  REQUIRE(device.read(address, words, 16).ok());
  for (uint32_t word : words) CHECK(word == 0xcdcdcdcd);
  CHECK_FALSE(device.read(address, words, 17).ok());
  CHECK_FALSE(device.write(address + 4, words, 16).ok());
}
