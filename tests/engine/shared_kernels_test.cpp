// What is known of a device is found out once, for all models and executors on it: counted on the mock of HIP
// and on a Vulkan device.
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/forwarding_device.h"
#include "support/hip_orders.h"
#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;

namespace {

// Counts kernels that are compiled, and streams, one of which each product of matrices needs.
class CountingDevice final : public ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  std::atomic<uint32_t> loads = 0, streams = 0;
  void pass_for_a_gpu() { info_.cpu_type = false; }  // a driver that runs on the processor
  Status load(const KernelCode& code, Kernel* out) override {
    ++loads;
    return inner_.load(code, out);
  }
  Status create_stream(Stream** out) override {
    ++streams;
    return inner_.create_stream(out);
  }
};

void require(Status status) {
  INFO(error_text());
  REQUIRE(status.ok());
}

// The bundled model, whose weights are packed.
void describe_tales(DeviceKernels& kernels, const Log& log, Model* out) {
  Source source;
  require(source.open_file(GRETA_SOURCE_DIR "/models/tales-llama-7m-q4_k_m.gguf"));
  require(describe_model(std::move(source), kernels, false, log, out));
}

void load_tales(DeviceKernels& kernels, const Log& log = {}) {
  Model model;
  describe_tales(kernels, log, &model);
  require(load_model(&model, {}));
}

void plan_tales(DeviceKernels& kernels) {
  Model model;
  describe_tales(kernels, {}, &model);
  ExecutorOptions options{.context = 64};
  ExecutorPlan plan;
  require(Executor::plan(model, &options, uint64_t(1) << 32, &plan));
}

struct Opened {
  Model model;
  std::unique_ptr<Executor> executor;
  Opened(DeviceKernels& kernels, const std::string& file, bool compile_ahead = false) {
    Source source;
    require(source.open_memory(file.data(), file.size()));
    require(describe_model(std::move(source), kernels, false, Log{}, &model));
    require(load_model(&model, {}));
    ExecutorOptions options{.context = 64};
    options.cache_tokens = 256;
    options.compile_ahead = compile_ahead;
    require(Executor::open(model, options, uint64_t(1) << 32, &executor));
  }
  // Reads a prompt of 20 tokens in each of three sequences, and then a token of all of them.
  void run() {
    using Output = Executor::Output;
    for (uint32_t i = 0; i < 3; ++i) {
      uint32_t sequence;
      require(executor->acquire_sequence(&sequence));
      executor->set_sampling(sequence, {});
      std::vector<Executor::Row> rows;
      for (uint32_t at = 0; at < 20; ++at)
        rows.push_back({at, at, sequence, at == 19 ? Output::Draw : Output::None});
      require(executor->step(rows));
    }
    const Executor::Row next[] = {
        {1, 20, 0, Output::Draw}, {2, 20, 1, Output::Draw}, {3, 20, 2, Output::Draw}};
    require(executor->step(next));
  }
};

uint32_t count_warnings(void (*work)(DeviceKernels&, const Log&), DeviceKernels& kernels) {
  uint32_t count = 0;
  const auto note = [](void* user, uint32_t level, const char*) {
    *static_cast<uint32_t*>(user) += level == uint32_t(LogLevel::Warning);
  };
  work(kernels, {note, &count});
  return count;
}

}  // namespace

TEST_CASE("kernels: those of a model are tried once, and not for a memory plan", "[engine][hip]") {
  HipOrders orders;
  orders.set("ARCH", "gfx942");
  const OpenDevice mock = open_mock_hip();
  CountingDevice device(*mock);
  DeviceKernels kernels(device);
  plan_tales(kernels);
  CHECK(device.loads == 0);
  CHECK(device.streams == 0);
  load_tales(kernels);
  const uint32_t loads = device.loads, streams = device.streams;
  CHECK(loads > 0);
  CHECK(streams > 0);
  load_tales(kernels);
  CHECK(device.loads == loads);
  CHECK(device.streams < 2 * streams);  // those of the upload, and not that of a product of matrices
  DeviceKernels others(device);  // another object knows nothing
  load_tales(others);
  CHECK(device.loads == 2 * loads);
}

TEST_CASE("kernels: those of a model on Vulkan are tried once, and not for a memory plan", "[engine]") {
  if (!is_there("vulkan")) SKIP("no Vulkan device");
  const OpenDevice vulkan = open_named("vulkan0", 0);
  CountingDevice device(*vulkan);
  DeviceKernels kernels(device);
  plan_tales(kernels);
  CHECK(device.loads == 0);
  CHECK(device.streams == 0);
  load_tales(kernels);
  const uint32_t loads = device.loads;
  CHECK(loads > 0);  // those that pack weights
  load_tales(kernels);
  CHECK(device.loads == loads);
}

TEST_CASE("kernels: a second model with its executor compiles nothing", "[engine][hip]") {
  HipOrders orders;
  orders.set("ARCH", "gfx942");
  const OpenDevice mock = open_mock_hip();
  CountingDevice device(*mock);
  DeviceKernels kernels(device);
  const TinyModel tiny = make_tiny({.width = 128, .heads = 8, .kv_heads = 2, .head_width = 32});
  std::optional<Opened> first(std::in_place, kernels, tiny.file);
  const uint32_t loads = device.loads;
  CHECK(loads > 0);
  const Opened second(kernels, tiny.file);
  CHECK(device.loads == loads);
  first.reset();  // what it compiled stays
  const Opened third(kernels, tiny.file);
  CHECK(device.loads == loads);
}

TEST_CASE("kernels: an executor that compiles ahead compiles nothing in its steps", "[engine]") {
  if (!is_there("vulkan")) SKIP("no Vulkan device");
  const OpenDevice vulkan = open_named("vulkan0", 0);
  const TinyModel tiny = make_tiny({.width = 128, .heads = 8, .kv_heads = 2, .head_width = 32});
  uint32_t loads[2];  // by opening an executor, without and with
  for (const bool ahead : {false, true}) {
    CountingDevice device(*vulkan);
    device.pass_for_a_gpu();
    DeviceKernels kernels(device);
    Opened opened(kernels, tiny.file, ahead);
    loads[ahead] = device.loads;
    opened.run();
    if (ahead) CHECK(device.loads == loads[ahead]);
  }
  CHECK(loads[true] > loads[false]);
}

TEST_CASE("kernels: that a device multiplies wrong is told once, and known to all models", "[engine][hip]") {
  HipOrders orders;
  orders.set("ARCH", "gfx942");
  orders.set("WRONG_MATRICES", "1");
  const OpenDevice mock = open_mock_hip();
  DeviceKernels kernels(*mock);
  CHECK(count_warnings(load_tales, kernels) == 1);
  CHECK(kernels.refused().any());
  CHECK(count_warnings(load_tales, kernels) == 0);
  CHECK(kernels.refused().any());
}
