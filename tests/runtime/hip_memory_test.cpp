// What HIP devices say of memory and units, over the mock runtime and made-up files of the kernel.
#include <sys/mman.h>

#include <catch2/matchers/catch_matchers_string.hpp>

#include "api/handles.h"
#include "backends/hip/card.h"
#include "support/device_kernels.h"
#include "support/fake_gpus.h"
#include "support/hip_orders.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr uint64_t kGiB = uint64_t(1) << 30, kMiB = uint64_t(1) << 20;
constexpr FakeGpu kCard = {"0000:03:00.0", 128, 90402};  // the address of the mock's first device
const std::string kNode = "/sys/class/kfd/kfd/topology/nodes/1/";

struct Rig {
  HipOrders orders;
  FakeGpus tree;
  DeviceOptions options = with_mock_hip();
  Rig() {
    tree.add_kfd();
    tree.add(kCard);
    options.system = tree.view();
  }
  void set_bytes(const char* what, uint64_t bytes) { orders.set(what, std::to_string(bytes).c_str()); }
  // A bank of the compute driver's node.
  void add_bank(uint32_t number, uint32_t heap, uint64_t bytes) {
    tree.write(kNode + "mem_banks/" + std::to_string(number) + "/properties",
               "heap_type " + std::to_string(heap) + "\nsize_in_bytes " + std::to_string(bytes) +
                   "\nflags 0\nwidth 256\n");
  }
  void set_node(const std::string& more, uint32_t cores = 0) {
    tree.write(kNode + "properties", "cpu_cores_count " + std::to_string(cores) + "\n" + more +
                                         "location_id 768\ndomain 0\ndrm_render_minor 128\n");
  }
  DeviceInfo described() {  // known of a device for which this build has no code too
    DeviceInfo info;
    for (const Backend* backend : backends())
      if (!strcmp(backend->name, "hip")) (void)backend->describe(0, options, &info);
    return info;
  }
  std::unique_ptr<Device> open() {
    Device* device = nullptr;
    const Status status = orders.open(&device, options);
    INFO(error_text());
    REQUIRE(status.ok());
    return std::unique_ptr<Device>(device);
  }
};

}  // namespace

TEST_CASE("hip: what graphics uses is not free", "[runtime][hip]") {
  Rig rig;
  rig.set_bytes("MEMORY", 24 * kGiB);
  rig.tree.add_memory(kCard, 24 * kGiB, 20 * kGiB, 64 * kGiB, 0);
  const auto device = rig.open();
  CHECK(device->info().memory_bytes == 24 * kGiB);
  CHECK(device->memory_free() == 4 * kGiB);
  rig.tree.add_memory(kCard, 24 * kGiB, 0, 64 * kGiB, 0);  // a file that says nothing is not believed
  CHECK(device->memory_free() > 23 * kGiB);
  rig.tree.add_memory(kCard, 24 * kGiB, 30 * kGiB, 64 * kGiB, 0);
  CHECK(device->memory_free() == 0);
}

TEST_CASE("hip: plans leave some memory free", "[runtime][hip]") {
  Rig rig;
  rig.set_bytes("MEMORY", 24 * kGiB);
  RuntimeDevice runtime;
  runtime.device = rig.open();
  CHECK(runtime.device->info().reserve_bytes == 384 * kMiB);
  const uint64_t free = runtime.device->memory_free();
  CHECK(runtime.free_bytes() == free - 384 * kMiB);
  CHECK(reserve_of(8 * kGiB) == 256 * kMiB);
  CHECK(reserve_of(kGiB) == 64 * kMiB);
}

TEST_CASE("hip: an APU has what the compute driver lends it", "[runtime][hip]") {
  Rig rig;
  rig.orders.set("INTEGRATED", "1");
  rig.set_bytes("MEMORY", 62 * kGiB);
  rig.tree.add_memory(kCard, 512 * kMiB, 100 * kMiB, 96 * kGiB, kGiB);
  CHECK(rig.open()->info().memory_bytes == 62 * kGiB);  // what HIP says, where the driver tells no bank
  rig.add_bank(0, 1, 40 * kGiB);
  rig.add_bank(1, 0, 500 * kGiB);  // the processor's
  const auto device = rig.open();
  CHECK(device->info().memory_bytes == 40 * kGiB);
  CHECK(device->memory_free() > 0);
  CHECK(device->memory_free() <= memory_available_bytes() + kGiB);
  // Memory that the firmware set aside is none of the host's.
  rig.tree.add_memory(kCard, 64 * kGiB, 4 * kGiB, 16 * kGiB, 0);
  rig.add_bank(0, 1, 64 * kGiB);
  CHECK(rig.open()->memory_free() == 60 * kGiB);
}

TEST_CASE("hip: an APU that HIP before 6.2 does not tell is known by the compute driver", "[runtime][hip]") {
  Rig rig;
  rig.orders.set("VERSION", "60100000");
  rig.set_bytes("MEMORY", 512 * kMiB);  // what the firmware set aside
  rig.tree.add_memory(kCard, 512 * kMiB, 100 * kMiB, 96 * kGiB, kGiB);
  rig.add_bank(0, 1, 40 * kGiB);
  rig.set_node("simd_count 32\nsimd_per_cu 2\n");
  CHECK(!rig.described().unified_memory);
  CHECK(rig.described().memory_bytes == 512 * kMiB);
  rig.set_node("simd_count 32\nsimd_per_cu 2\n", 16);
  CHECK(rig.described().unified_memory);
  CHECK(rig.described().memory_bytes == 40 * kGiB);
}

TEST_CASE("hip: RDNA's units are not pairs, and dies are known", "[runtime][hip]") {
  Rig rig;
  rig.orders.set("ARCH", "gfx942");
  rig.orders.set("UNITS", "80");
  CHECK(rig.described().unit_count == 80);
  rig.set_node("simd_count 320\nsimd_per_cu 4\nnum_xcc 4\n");
  CHECK(rig.described().unit_count == 80);
  CHECK(rig.described().die_count == 4);
  rig.orders.set("ARCH", "gfx1250");  // of CDNA, though its waves have 32 lanes
  CHECK(rig.described().unit_count == 80);
  rig.orders.set("ARCH", "gfx1100");
  rig.orders.set("UNITS", "48");
  rig.set_node("simd_count 192\nsimd_per_cu 2\n");
  CHECK(rig.described().unit_count == 96);
  rig.set_node("simd_count 96\nsimd_per_cu 2\n");  // GPU_ENABLE_WGP_MODE=0: HIP counts units
  CHECK(rig.described().unit_count == 48);
}

TEST_CASE("hip: the units of a GPU say how many dies it has, where the system does not", "[runtime][hip]") {
  CHECK(hip_dies("gfx942", 304, {}) == 8);
  CHECK(hip_dies("gfx942", 228, {}) == 6);
  CHECK(hip_dies("gfx942", 38, {}) == 1);
  CHECK(hip_dies("gfx942", 80, {}) == 1);  // not known
  CHECK(hip_dies("gfx950", 256, {}) == 8);
  CHECK(hip_dies("gfx90a", 104, {}) == 1);
  CHECK(hip_dies("gfx1100", 96, {}) == 1);
  HipCard card;
  card.dies = 4;
  CHECK(hip_dies("gfx942", 80, card) == 4);
}

TEST_CASE("hip: no mapped file is read in place unless asked, and at most 1 GiB at once", "[runtime][hip]") {
  Rig rig;
  rig.orders.set("INTEGRATED", "1");
  CHECK(!rig.open()->info().imports_host);
  rig.options.imports_files = true;
  const auto device = rig.open();
  CHECK(device->info().imports_host);
  CHECK(device->info().max_import_bytes == kGiB);
  void* const pages = mmap(nullptr, 2 * kGiB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  Buffer buffer;
  CHECK(device->import_host(pages, kGiB + 1, &buffer).code == Code::Memory);
  CHECK_THAT(error_text(), ContainsSubstring("1.00 GiB at once"));
  CHECK(device->import_host(static_cast<char*>(pages) + 64, kGiB, &buffer).code ==
        Code::Memory);  // in whole pages
  REQUIRE(device->import_host(pages, kGiB, &buffer).ok());
  device->release(buffer);
  munmap(pages, 2 * kGiB);
}

TEST_CASE("hip: threads of a launch that 32 bits do not count are refused", "[runtime][hip]") {
  HipOrders orders;
  const OpenDevice device = open_mock_hip();
  const KernelCode code = test_kernel_code(*device, "index");
  Kernel kernel;
  REQUIRE(device->load(code, &kernel).ok());
  const auto stream = new_stream(*device);
  const uint8_t block[64] = {};
  CHECK(stream->dispatch(kernel, {0x7fffffff, 1, 1}, block, {}).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("2147483647 groups of 64 threads"));
  stream->abandon();
  device->unload(kernel);
}
