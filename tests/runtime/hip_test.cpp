// The HIP backend over the mock runtime: what a driver refuses, loses or never ends.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <string>

#include "backends/hip/system.h"
#include "places.h"
#include "support/device_kernels.h"
#include "support/fake_gpus.h"
#include "support/hip_orders.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

namespace {

// Keeps the last message that a device logs.
struct Messages {
  std::string last;
  Log log() {
    return {[](void* user, uint32_t, const char* text) { static_cast<Messages*>(user)->last = text; }, this};
  }
};

// y = 3 i + base, by a graph that is replayed.
std::vector<uint32_t> replayed(Device& device, uint32_t base) {
  const TestKernels kernels(device);
  const auto stream = new_stream(device);
  Words y(device, 300);
  OwnedGraph owned{device, {}};
  REQUIRE(stream->begin_capture().ok());
  REQUIRE(kernels.write_index(*stream, y.all(), 3, base).ok());
  REQUIRE(stream->barrier().ok());
  REQUIRE(stream->fill(y.slice(0, 1), 77).ok());
  REQUIRE(stream->end_capture(&owned.graph).ok());
  REQUIRE(stream->replay(owned.graph).ok());
  REQUIRE(stream->wait().ok());
  return read_words(device, y.all());
}

void check_replayed(const std::vector<uint32_t>& words, uint32_t base) {
  CHECK(words[0] == 77);
  CHECK(words[299] == 3 * 299 + base);
}

const Backend& find_backend(const char* name) {
  for (const Backend* backend : backends())
    if (!strcmp(backend->name, name)) return *backend;
  FAIL("no backend " << name);
  return *backends()[0];
}

}  // namespace

TEST_CASE("hip: no library, an old one, no device, no such device", "[runtime][hip]") {
  HipOrders orders;
  DeviceOptions options;
  options.driver_library = "/nonexistent/libamdhip64.so";
  Device* device = nullptr;
  CHECK(orders.open(&device, options).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("hip0") && ContainsSubstring("/nonexistent/libamdhip64.so"));
  const std::string other_name = std::string("/") + MOCK_HIP_LIBRARY;  // it is opened once by each name
  options.driver_library = other_name.c_str();
  orders.set("VERSION", "50221153");
  CHECK(orders.open(&device, options).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("HIP 5.2.21153, which is too old: 6.0 is needed"));
  orders.none();
  orders.set("ARCH", "none");
  CHECK(orders.open(&device).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("finds no device") && ContainsSubstring("/dev/kfd"));
  DeviceInfo info;
  CHECK(find_backend("hip").describe(0, with_mock_hip(), &info).code == Code::Unsupported);
  CHECK(info.library == std::filesystem::canonical(MOCK_HIP_LIBRARY));
  orders.set("ARCH", "gfx942,gfx1100");
  NamedDevice named;
  CHECK(open_device("hip2", with_mock_hip(), &named).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("there are 2 HIP devices"));
  REQUIRE(open_device("hip1", with_mock_hip(), &named).ok());
  const std::unique_ptr<Device> second(named.device);
  CHECK(std::string(second->info().arch) == "gfx1100");
  CHECK(second->info().wave_max == 32);
  if (embedded_test_code(second->info(), "index")) check_replayed(replayed(*second, 5), 5);
}

TEST_CASE("hip: a capture that is refused becomes single launches", "[runtime][hip]") {
  HipOrders orders;
  for (const char* order :
       {"hipStreamBeginCapture 0 900", "hipStreamEndCapture 0 901", "hipGraphInstantiate 0 1"}) {
    orders.set("FAIL", order);
    Messages messages;
    DeviceOptions options = with_mock_hip();
    options.log = messages.log();
    Device* opened = nullptr;
    REQUIRE(orders.open(&opened, options).ok());
    const std::unique_ptr<Device> device(opened);
    check_replayed(replayed(*device, 9), 9);
    CHECK_THAT(messages.last,
               ContainsSubstring("given one by one") &&
                   ContainsSubstring(std::string(order).substr(0, std::string(order).find(' '))));
  }
  orders.none();
  const OpenDevice device = open_mock_hip();
  check_replayed(replayed(*device, 1), 1);
}

TEST_CASE("hip: a launch, copy or fill that fails is an error with its name", "[runtime][hip]") {
  HipOrders orders;
  const auto failure = [&](const char* order) -> std::string {
    const OpenDevice device = open_mock_hip();
    const TestKernels kernels(*device);
    Words y(*device, 64), host(*device, 64, Memory::Readback);
    const auto stream = new_stream(*device);
    orders.set("FAIL", order);
    REQUIRE(stream->fill(y.all(), 0).ok());
    REQUIRE(kernels.write_index(*stream, y.all(), 3).ok());
    REQUIRE(stream->copy(host.all(), y.all()).ok());
    CHECK(stream->wait().code == Code::Device);
    const std::string text = error_text();
    orders.none();
    CHECK(stream->wait().code == Code::Device);  // what came before is lost
    CHECK_THAT(error_text(), ContainsSubstring("was lost"));
    CHECK(device->memory_free() == 0);
    return text;
  };
  CHECK_THAT(failure("hipModuleLaunchKernel 0 719"),
             ContainsSubstring("index_test") && ContainsSubstring("hipModuleLaunchKernel"));
  CHECK_THAT(failure("hipMemcpyAsync 0 1"), ContainsSubstring("hipMemcpyAsync"));
  CHECK_THAT(failure("hipMemsetD32Async 0 999"), ContainsSubstring("hipMemsetD32Async"));
}

TEST_CASE("hip: a device that hangs is lost after the time limit, and opened again", "[runtime][hip]") {
  HipOrders orders;
  DeviceOptions options = with_mock_hip();
  options.wait_limit_ms = 20;
  Device* opened = nullptr;
  REQUIRE(orders.open(&opened, options).ok());
  std::unique_ptr<Device> device(opened);
  {
    const TestKernels kernels(*device);
    Words y(*device, 64);
    const auto stream = new_stream(*device), other = new_stream(*device);
    OwnedEvent event(*device);
    orders.set("HANG", "1");
    REQUIRE(kernels.write_index(*stream, y.all(), 3).ok());
    REQUIRE(stream->signal(event.event).ok());
    CHECK(stream->wait(event.event).code == Code::Device);
    CHECK_THAT(error_text(), ContainsSubstring("was lost (a wait without end"));
    CHECK(other->fill(y.all(), 1).code == Code::Device);
    Buffer buffer;
    CHECK(device->allocate(64, Memory::Device, &buffer).code == Code::Device);
  }
  device.reset();
  orders.none();
  const OpenDevice again = open_mock_hip();
  check_replayed(replayed(*again, 2), 2);
}

TEST_CASE("hip: a page fault is a status, and the device is opened again", "[runtime][hip]") {
  HipOrders orders;
  {
    const OpenDevice device = open_mock_hip();
    const TestKernels kernels(*device);
    Words y(*device, 64);
    const auto stream = new_stream(*device);
    orders.set("FAULT", "1");
    REQUIRE(kernels.write_index(*stream, y.all(), 3).ok());
    CHECK(stream->wait().code == Code::Device);
    CHECK_THAT(error_text(), ContainsSubstring("memory at 0xdead000"));
    CHECK(stream->fill(y.all(), 1).code == Code::Device);
  }
  orders.none();
  const OpenDevice again = open_mock_hip();
  check_replayed(replayed(*again, 2), 2);
}

TEST_CASE("hip: memory that runs out half-way is refused with the numbers", "[runtime][hip]") {
  HipOrders orders;
  orders.set("MEMORY", "1000000");
  const OpenDevice device = open_mock_hip();
  CHECK(device->memory_free() > 900000);  // a device that was lost leaves its memory behind
  Buffer first, second;
  REQUIRE(device->allocate(600000, Memory::Device, &first).ok());
  CHECK(device->allocate(600000, Memory::Device, &second).code == Code::Memory);
  CHECK_THAT(error_text(), ContainsSubstring("cannot allocate 600000 bytes of device memory") &&
                               ContainsSubstring("are free"));
  CHECK(device->allocate(2000000, Memory::Device, &second).code == Code::Memory);
  CHECK_THAT(error_text(), ContainsSubstring("the largest buffer of Mock GPU gfx942"));
  device->release(first);
  REQUIRE(device->allocate(600000, Memory::Device, &second).ok());
  orders.set("FAIL", "hipMalloc 0 2");  // another program took it
  CHECK(device->allocate(6000, Memory::Device, &first).code == Code::Memory);
  CHECK_THAT(error_text(), ContainsSubstring("seemed to be free"));
  device->release(second);
}

TEST_CASE("hip: a code object that is cut short or refused is an error of that kernel", "[runtime][hip]") {
  HipOrders orders;
  const OpenDevice device = open_mock_hip();
  KernelCode code = test_kernel_code(*device, "index");
  Kernel kernel;
  code.code.last -= 200;
  CHECK(!device->load(code, &kernel).ok());
  CHECK_THAT(error_text(), ContainsSubstring(code.name));
  code = test_kernel_code(*device, "index");
  orders.set("FAIL", "hipModuleLoadData 0 209");
  CHECK(device->load(code, &kernel).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("HIP 7.15.26333 refuses the code object"));
  orders.set("VERSION", "60200000");
  CHECK(device->load(code, &kernel).code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("HIP 6.2.0 refuses") && ContainsSubstring("6.4 or newer") &&
                               ContainsSubstring("-DGRETA_HIP_TARGETS=gfx942"));
  orders.none();
  REQUIRE(device->load(code, &kernel).ok());
  device->unload(kernel);
}

TEST_CASE("hip: no graph is destroyed while it runs", "[runtime][hip]") {
  HipOrders orders;
  const OpenDevice device = open_mock_hip();
  const auto stream = new_stream(*device);
  Words y(*device, 64);
  Graph graph;
  REQUIRE(stream->begin_capture().ok());
  REQUIRE(stream->fill(y.all(), 5).ok());
  REQUIRE(stream->end_capture(&graph).ok());
  REQUIRE(stream->replay(graph).ok());
  REQUIRE(stream->submit().ok());
  device->destroy(graph);  // the mock runtime ends the program if it is destroyed now
  REQUIRE(stream->wait().ok());
  CHECK(read_words(*device, y.all())[9] == 5);
}

TEST_CASE("hip: kernels of one code object share it", "[runtime][hip]") {
  HipOrders orders;
  const OpenDevice device = open_mock_hip();
  const KernelCode code = test_kernel_code(*device, "index");
  Kernel first, second;
  REQUIRE(device->load(code, &first).ok());
  orders.set("FAIL", "hipModuleLoadData 0 209");
  REQUIRE(device->load(code, &second).ok());
  device->unload(first);
  REQUIRE(device->load(code, &first).ok());
  device->unload(first);
  device->unload(second);
  CHECK(!device->load(code, &first).ok());
}

TEST_CASE("hip: an APU takes pages of a file, another GPU copies", "[runtime][hip]") {
  HipOrders orders;
  CHECK(!open_mock_hip()->info().imports_host);
  orders.set("INTEGRATED", "1");
  DeviceOptions options = with_mock_hip();
  options.imports_files = true;
  const auto imports = [&] {
    Device* opened = nullptr;
    REQUIRE(orders.open(&opened, options).ok());
    const std::unique_ptr<Device> device(opened);
    CHECK(device->info().unified_memory);
    return device->info().imports_host;
  };
  CHECK(imports());
  orders.set("FAIL", "hipHostRegister 0 1");
  CHECK(!imports());
}

TEST_CASE("hip: a device without code says what to do, before it is opened", "[runtime][hip]") {
  constexpr int kOld = 60241134, kNew = 60443484;
  CHECK(hip_check_code("gfx942", kOld, "gfx90a gfx942").ok());
  CHECK(hip_check_code("gfx942", kNew, "gfx9-4-generic").ok());
  CHECK(hip_check_code("gfx1151", kNew, "gfx90a gfx11-generic").ok());
  CHECK(hip_check_code("gfx942", kOld, "gfx9-4-generic").code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("HIP 6.2 does not know") && ContainsSubstring("ROCm 6.4") &&
                               ContainsSubstring("-DGRETA_HIP_TARGETS=gfx942"));
  CHECK(hip_check_code("gfx906", kNew, "gfx90a gfx11-generic").code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("no code object of this build fits gfx906, there are gfx90a "
                                             "gfx11-generic: use Vulkan"));
  CHECK(hip_check_code("gfx942", kNew, "").code == Code::Unsupported);
  CHECK_THAT(error_text(), ContainsSubstring("no HIP kernels: install clang"));
}

// Whether this build has code objects for the target itself, which any HIP 6 loads.
static bool has_exact_code(std::string_view target) {
  const std::string all = std::string(" ") + kHipTargets + " ";
  return all.find(" " + std::string(target) + " ") != std::string::npos;
}

TEST_CASE("hip: what keeps a GPU from being used is said by name, and auto goes on", "[runtime][hip]") {
  HipOrders orders;
  FakeGpus tree;
  std::string log;
  DeviceOptions options = with_mock_hip();
  options.threads = 1;
  options.system = tree.view();
  options.log = {[](void* to, uint32_t level, const char* text) {
                   if (level >= uint32_t(LogLevel::Warning)) *static_cast<std::string*>(to) += text;
                 },
                 &log};
  const Backend* const hip_and_cpu[] = {&find_backend("hip"), &find_backend("cpu")};
  const auto choose = [&] {
    log.clear();
    NamedDevice named;
    REQUIRE(open_best(hip_and_cpu, options, &named).ok());
    delete named.device;
    return std::string(named.id);
  };
  CHECK(choose() == "cpu");  // without /dev/kfd the runtime is not asked
  CHECK(log.empty());
  tree.add_kfd();
  tree.add(kInstinct);
  CHECK(choose() == "hip0");
  orders.set("ARCH", "none");
  CHECK(choose() == "cpu");
  CHECK_THAT(log, ContainsSubstring("hip0: the HIP runtime finds no device: ") &&
                      ContainsSubstring("finds none of the GPUs that the kernel shows (gfx942)"));
  FakeGpus::forbidden = "/dev/kfd";
  CHECK(choose() == "cpu");
  CHECK_THAT(log, ContainsSubstring("the group render (sudo usermod -aG render,video $USER"));
  FakeGpus::forbidden.clear();
  orders.set("ARCH", "gfx906");
  CHECK(choose() == "cpu");
  CHECK_THAT(log, ContainsSubstring("no code object of this build fits gfx906"));
  orders.set("ARCH", "gfx942");
  for (const char* version : {"60032830", "60342134"}) {  // they refuse code for a family
    orders.set("VERSION", version);
    CHECK(choose() == (has_exact_code("gfx942") ? "hip0" : "cpu"));
    if (has_exact_code("gfx942")) continue;
    CHECK_THAT(log, ContainsSubstring("hip0, Mock GPU gfx942: HIP 6.") &&
                        ContainsSubstring("install ROCm 6.4 or newer, or build with "
                                          "-DGRETA_HIP_TARGETS=gfx942"));
  }
  options.driver_library = "/nonexistent/libamdhip64.so";
  CHECK(choose() == "cpu");
  CHECK_THAT(log, ContainsSubstring("hip0: ") && ContainsSubstring("/nonexistent/libamdhip64.so"));
}
