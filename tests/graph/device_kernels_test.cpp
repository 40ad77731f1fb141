// Kernels that plans want: compiled once for all of a device's models, told of and stopped, and named where
// that fails.
#include "support/device_kernels.h"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "graph/graph.h"
#include "support/limited_device.h"

using namespace greta;

namespace {

// Rows of kernels that a driver compiles.
struct Rows {
  const uint8_t code[4] = {};
  std::vector<std::string> names;
  std::vector<KernelRow> rows;
  explicit Rows(size_t count) : names(count), rows(count) {
    for (size_t i = 0; i < count; ++i) {
      names[i] = "kernel" + std::to_string(i);
      rows[i].name = rows[i].code.name = names[i].c_str();
      rows[i].code.code = {code, code + sizeof code};
    }
  }
  void want(KernelSet* kernels, std::vector<const Kernel*>* out) {
    out->clear();
    for (const KernelRow& row : rows) out->push_back(kernels->want(row, {}));
  }
};

// Counts what is compiled; from some kernel on that takes until it is let go, and a tenth of a second more.
class SlowDevice final : public test::LimitedDevice {
 public:
  using LimitedDevice::LimitedDevice;
  int at_once = 0, loaded = 0, unloaded = 0;

  void let_go() {
    const std::lock_guard<std::mutex> lock(mutex_);
    let_go_ = true;
    gone_.notify_all();
  }
  Status load(const KernelCode& code, Kernel* out) override {
    std::unique_lock<std::mutex> lock(mutex_);
    if (++loaded > at_once && !let_go_) {
      gone_.wait_for(lock, std::chrono::seconds(20), [&] { return let_go_; });
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return LimitedDevice::load(code, out);
  }
  void unload(Kernel& kernel) override {
    ++unloaded;
    LimitedDevice::unload(kernel);
  }

 private:
  std::mutex mutex_;
  std::condition_variable gone_;
  bool let_go_ = false;
};

struct Told {
  SlowDevice& device;
  uint64_t stop_at;
  std::vector<std::pair<uint64_t, uint64_t>> heard = {};
  static int hear(void* user, uint64_t done, uint64_t total) {
    Told& told = *static_cast<Told*>(user);
    told.heard.push_back({done, total});
    if (done < told.stop_at) return 0;
    told.device.let_go();
    return done < total ? 1 : 0;
  }
};

}  // namespace

TEST_CASE("wanted kernels are compiled once, and one that is refused is named and wanted no more",
          "[graph]") {
  NullOptions options;
  options.fail_submit = 1;
  const OpenDevice device = open_null(options);
  Rows all(4);
  std::vector<KernelRow>& row = all.rows;
  DeviceKernels shared(*device);
  KernelSet kernels(shared);
  const Kernel* a = kernels.want(row[0], {});
  const Kernel* b = kernels.want(row[1], {});
  CHECK(kernels.want(row[0], {}) == a);
  REQUIRE(kernels.compile().ok());
  CHECK(a->handle != nullptr);
  CHECK(b->handle != nullptr);
  CHECK(b->name == row[1].name);

  CHECK(new_stream(*device)->wait().code == Code::Device);  // lost
  kernels.want(row[2], {});
  kernels.want(row[3], {});
  CHECK(kernels.compile().code == Code::Device);
  CHECK_THAT(error_text(), Catch::Matchers::ContainsSubstring("kernel kernel2: "));
  CHECK(kernels.compile().ok());  // nothing is left to do
  CHECK(kernels.want(row[1], {}) == b);
}

TEST_CASE("compiling is cancelled between kernels, and goes on from there the next time", "[graph]") {
  constexpr int kCount = 100;
  const OpenDevice null = open_null({});
  SlowDevice device(*null, 1 << 20);
  device.at_once = 5;
  Rows all(kCount);
  {
    DeviceKernels shared(device);
    KernelSet kernels(shared);
    std::vector<const Kernel*> wanted;
    all.want(&kernels, &wanted);
    Told told{device, 5};
    CHECK(kernels.compile({Told::hear, &told}).code == Code::Cancelled);
    CHECK_THAT(error_text(), Catch::Matchers::ContainsSubstring("of 100 kernels"));
    REQUIRE(!told.heard.empty());
    CHECK(told.heard.back() == std::pair<uint64_t, uint64_t>(5, kCount));
    CHECK(device.loaded >= 5);
    CHECK(device.loaded < kCount);
    CHECK(device.unloaded == 0);
    REQUIRE(kernels.compile().ok());  // what was not there is wanted no more
    CHECK(device.loaded < kCount);

    all.want(&kernels, &wanted);
    REQUIRE(kernels.compile().ok());
    CHECK(device.loaded == kCount);
    for (const Kernel* kernel : wanted) CHECK(kernel->handle != nullptr);
  }
  CHECK(device.unloaded == kCount);
}

TEST_CASE("who was told of kernels that are compiled hears of the last one", "[graph]") {
  const OpenDevice null = open_null({});
  SlowDevice device(*null, 1 << 20);
  Rows all(3);
  DeviceKernels shared(device);
  KernelSet kernels(shared);
  std::vector<const Kernel*> wanted;
  all.want(&kernels, &wanted);
  Told told{device, 3};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    device.let_go();
  });
  const Status status = kernels.compile({Told::hear, &told});
  later.join();
  REQUIRE(status.ok());
  REQUIRE(told.heard.size() > 1);
  CHECK(told.heard.front() == std::pair<uint64_t, uint64_t>(0, 3));
  CHECK(told.heard.back() == std::pair<uint64_t, uint64_t>(3, 3));
}

TEST_CASE("what one executor has compiled, another one has, and it stays when they are gone", "[graph]") {
  const OpenDevice null = open_null({});
  SlowDevice device(*null, 1 << 20);
  device.let_go();
  Rows all(3);
  {
    DeviceKernels shared(device);
    const Kernel* first = nullptr;
    for (uint32_t turn = 0; turn < 3; ++turn) {
      KernelSet kernels(shared);
      std::vector<const Kernel*> wanted;
      all.want(&kernels, &wanted);
      REQUIRE(kernels.compile().ok());
      if (!first) first = wanted[0];
      CHECK(wanted[0] == first);
    }
    CHECK(device.loaded == 3);
    CHECK(device.unloaded == 0);
  }
  CHECK(device.unloaded == 3);
}

TEST_CASE("executors that want the same kernels at once share them", "[graph]") {
  constexpr int kCount = 8, kExecutors = 4;
  const OpenDevice null = open_null({});
  SlowDevice device(*null, 1 << 20);
  Rows all(kCount);
  DeviceKernels shared(device);
  std::atomic<int> right = 0;
  std::vector<std::thread> executors;
  for (int i = 0; i < kExecutors; ++i)
    executors.emplace_back([&] {
      KernelSet kernels(shared);
      std::vector<const Kernel*> wanted;
      all.want(&kernels, &wanted);
      const bool ok = kernels.compile().ok();
      right += ok && std::ranges::all_of(wanted, [](const Kernel* kernel) { return kernel->handle; });
    });
  device.let_go();
  for (std::thread& executor : executors) executor.join();
  CHECK(right == kExecutors);
  CHECK(device.loaded == kCount);
}

// One is told of the kernels, and cancels while the other one waits for those that it has at work.
TEST_CASE("kernels that one executor was told to leave are compiled for the other", "[graph]") {
  constexpr int kCount = 40;
  const OpenDevice null = open_null({});
  SlowDevice device(*null, 1 << 20);
  Rows all(kCount);
  DeviceKernels shared(device);
  std::atomic<bool> begun = false;
  std::thread other([&] {
    while (!begun) std::this_thread::yield();
    KernelSet kernels(shared);
    std::vector<const Kernel*> wanted;
    all.want(&kernels, &wanted);
    CHECK(kernels.compile().ok());
    for (const Kernel* kernel : wanted) CHECK(kernel->handle != nullptr);
  });
  KernelSet kernels(shared);
  std::vector<const Kernel*> wanted;
  all.want(&kernels, &wanted);
  struct Stop {
    SlowDevice& device;
    std::atomic<bool>& begun;
    static int at_once(void* user, uint64_t, uint64_t) {
      Stop& stop = *static_cast<Stop*>(user);
      stop.begun = true;
      stop.device.let_go();
      return 1;
    }
  } stop{device, begun};
  CHECK(kernels.compile({Stop::at_once, &stop}).code == Code::Cancelled);
  other.join();
  CHECK(device.loaded == kCount);
}

// A progress callback may open a session of the same model, which wants what is being compiled.
TEST_CASE("a progress callback may want the kernels that it is told of", "[graph]") {
  const OpenDevice null = open_null({});
  SlowDevice device(*null, 1 << 20);
  Rows all(4);
  DeviceKernels shared(device);
  struct Within {
    SlowDevice& device;
    DeviceKernels& shared;
    Rows& all;
    uint32_t compiled = 0;
    static int compile(void* user, uint64_t, uint64_t) {
      Within& self = *static_cast<Within*>(user);
      self.device.let_go();
      KernelSet kernels(self.shared);
      std::vector<const Kernel*> wanted;
      self.all.want(&kernels, &wanted);
      self.compiled += kernels.compile().ok();
      return 0;
    }
  } within{device, shared, all};
  KernelSet kernels(shared);
  std::vector<const Kernel*> wanted;
  all.want(&kernels, &wanted);
  REQUIRE(kernels.compile({Within::compile, &within}).ok());
  CHECK(within.compiled > 0);
  CHECK(device.loaded == 4);
}

// The driver is asked again by each, since each of them must be told.
TEST_CASE("what the driver refuses is refused to each executor that wants it", "[graph]") {
  const OpenDevice null = open_null({});
  class Refusing final : public test::LimitedDevice {
   public:
    using LimitedDevice::LimitedDevice;
    Status load(const KernelCode&, Kernel*) override { return fail(Code::Unsupported, "no such kernel"); }
  } device(*null, 1 << 20);
  Rows all(2);
  DeviceKernels shared(device);
  for (uint32_t turn = 0; turn < 2; ++turn) {
    KernelSet kernels(shared);
    std::vector<const Kernel*> wanted;
    all.want(&kernels, &wanted);
    CHECK(kernels.compile().code == Code::Unsupported);
    CHECK(kernels.refused().size() == 2);
  }
}
