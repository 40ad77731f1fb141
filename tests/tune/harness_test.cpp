// The harness that single ops are launched and timed with.
#include "tune/harness.h"

#include <catch2/catch_test_macros.hpp>

#include "selftest/quant/quant.h"
#include "support/forwarding_device.h"
#include "support/test_device.h"

using namespace greta;

namespace {

std::unique_ptr<Device> open_tested() {
  DeviceOptions options;
  options.driver_library = test::test_library();
  Device* device = nullptr;
  REQUIRE(open_device(test::test_device(), options, &device).ok());
  return std::unique_ptr<Device>(device);
}

std::vector<float> read(Harness& harness, const Slice& slice) {
  std::vector<float> values(slice.bytes / sizeof(float));
  REQUIRE(harness.read({&slice, 1}, values.data()).ok());
  return values;
}

// What has a step of one row.
Slice one_row(Harness& harness) {
  StepState step = {};
  step.token_count = 1;
  Slice slice;
  REQUIRE(harness.put(&step, sizeof step, &slice).ok());
  return slice;
}

// sum = sum + one, for a row of `width`.
Launch add_one(Harness& harness, const Slice& sum, const Slice& one, uint32_t width) {
  const Call call = CallMaker{one_row(harness)}.add(sum, one, sum, width);
  const KernelRow* row = nullptr;
  REQUIRE(choose_row({&call, 1}, 1, harness.filter(), &row).ok());
  Launch launch;
  REQUIRE(harness.prepare({&call, 1}, *row, 1, &launch).ok());
  return launch;
}

class CountingDevice : public test::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Status load(const KernelCode& code, Kernel* out) override {
    ++loads;
    return ForwardingDevice::load(code, out);
  }
  void unload(Kernel& kernel) override {
    ++unloads;
    ForwardingDevice::unload(kernel);
  }
  int loads = 0, unloads = 0;
};

}  // namespace

TEST_CASE("harness: what is put is read, in place and by copies", "[tune]") {
  const auto device = open_tested();
  for (const bool in_place : {true, false}) {
    Harness harness(*device, in_place);
    REQUIRE(harness.open().ok());
    // The last is longer than what is staged at once.
    std::vector<std::vector<uint8_t>> values;
    std::vector<Slice> slices;
    std::vector<uint8_t> all;
    for (const size_t bytes : {1u, 1000u, 3u, (9u << 20) + 5}) {
      auto& some = values.emplace_back(bytes);
      for (size_t i = 0; i < bytes; ++i) some[i] = uint8_t(i * 2654435761u >> 24);
      REQUIRE(harness.put(some, &slices.emplace_back()).ok());
      all.insert(all.end(), some.begin(), some.end());
    }
    std::vector<uint8_t> read(all.size());
    REQUIRE(harness.read(slices, read.data()).ok());
    CHECK(read == all);
    // A part of one, written again behind the others.
    const Slice part = {slices[1].buffer, slices[1].offset + 400, 200};
    REQUIRE(harness.write(part, values[3].data() + 77).ok());
    REQUIRE(harness.read({&part, 1}, read.data()).ok());
    CHECK(std::equal(read.begin(), read.begin() + 200, values[3].begin() + 77));
  }
}

TEST_CASE("harness: a launch is seen by what comes after it", "[tune]") {
  const auto device = open_tested();
  for (const bool in_place : {true, false}) {
    Harness harness(*device, in_place);
    REQUIRE(harness.open().ok());
    Slice sum, one;
    REQUIRE(harness.put(std::vector<float>(256, 5), &sum).ok());
    REQUIRE(harness.put(std::vector<float>(256, 1), &one).ok());
    const Launch launch = add_one(harness, sum, one, 256);
    for (int i = 0; i < 3; ++i) REQUIRE(harness.launch(launch).ok());
    CHECK(read(harness, sum) == std::vector<float>(256, 8));
    REQUIRE(harness.launch(launch).ok());
    REQUIRE(harness.write(sum, std::vector<float>(256, 20).data()).ok());
    REQUIRE(harness.launch(launch).ok());
    CHECK(read(harness, sum) == std::vector<float>(256, 21));
  }
}

TEST_CASE("harness: a round runs each launch once, and the shortest of the rounds is told", "[tune]") {
  const auto device = open_tested();
  Harness harness(*device);
  REQUIRE(harness.open().ok());
  Slice sum, one;
  REQUIRE(harness.put(std::vector<float>(64, 0), &sum).ok());
  REQUIRE(harness.put(std::vector<float>(64, 1), &one).ok());
  const std::vector<Launch> launches(7, add_one(harness, sum, one, 64));
  uint64_t ns = 0;
  REQUIRE(harness.time(launches, Harness::Order::Apart, &ns).ok());
  CHECK(ns > 0);
  CHECK(read(harness, sum) == std::vector<float>(64, 7));
  REQUIRE(harness.best_time(launches, Harness::Order::Apart, &ns, 3).ok());
  CHECK(ns > 0);
  CHECK(ns < ~uint64_t(0));
  // Processors need no warming.
  const float rounds = (read(harness, sum)[0] - 7) / 7;
  CHECK((harness.info().cpu_type ? rounds == 3 : rounds > 3));
}

TEST_CASE("harness: a kernel is loaded once for the same constants, and unloaded at the end", "[tune]") {
  const auto inner = open_tested();
  CountingDevice device(*inner);
  {
    Harness harness(device);
    REQUIRE(harness.open().ok());
    Slice sum, one;
    REQUIRE(harness.put(std::vector<float>(512, 0), &sum).ok());
    REQUIRE(harness.put(std::vector<float>(512, 1), &one).ok());
    const Launch first = add_one(harness, sum, one, 256), second = add_one(harness, sum, one, 256);
    CHECK(first.kernel == second.kernel);
    CHECK(device.loads == 1);
    harness.reset();  // kernels stay
    REQUIRE(harness.put(std::vector<float>(512, 0), &sum).ok());
    CHECK(add_one(harness, sum, sum, 256).kernel == first.kernel);
    CHECK(device.loads == 1);
    CHECK(device.unloads == 0);
  }
  CHECK(device.unloads == 1);
}

TEST_CASE("harness: copies hold the same bytes, and are taken in turn", "[tune]") {
  const auto device = open_tested();
  Harness harness(*device);
  REQUIRE(harness.open().ok());
  Copies copies;
  REQUIRE(harness.copies(100 << 20, false, &copies).ok());
  CHECK(copies.count == 1);
  CHECK(copies[5] == copies[0]);
  REQUIRE(harness.copies(100 << 20, true, &copies).ok());
  CHECK(copies.count == 2);
  CHECK(copies[1].offset == 100 << 20);
  CHECK(copies[2] == copies[0]);
  REQUIRE(harness.fill(copies[1], 3).ok());
  REQUIRE(harness.fill(copies[0], 7).ok());
  REQUIRE(harness.repeat(copies).ok());
  const Slice ends[] = {{copies.all.buffer, 0, 4}, {copies.all.buffer, (200 << 20) - 4, 4}};
  uint32_t words[2] = {};
  REQUIRE(harness.read(ends, words).ok());
  CHECK(words[0] == 7);
  CHECK(words[1] == 7);
}

TEST_CASE("harness: weights are converted to each layout that the device has", "[tune]") {
  const auto device = open_tested();
  Harness harness(*device);
  REQUIRE(harness.open().ok());
  reference::Random random;
  uint32_t packed = 0;
  for (const QuantType type : {QuantType::q8_0, QuantType::q4_k}) {
    const Layout layout = preferred_layout(type, harness.filter());
    const uint32_t n = 32, depth = 512, count = 2;
    std::vector<uint8_t> bytes(tensor_bytes(type, Layout::Gguf, n, depth, count));
    for (uint8_t& byte : bytes) byte = uint8_t(random());
    Slice gguf, wanted, made;
    REQUIRE(harness.put(bytes, &gguf).ok());
    REQUIRE(harness.room(tensor_bytes(type, layout, n, depth, count), &made).ok());
    REQUIRE(harness.room(made.bytes, &wanted).ok());
    REQUIRE(harness.pack(gguf, {type, layout, n, depth, count, made}).ok());
    packed += layout != Layout::Gguf;
    if (layout == Layout::Gguf) wanted = gguf;
    // By the plain kernels, one matrix at a time.
    for (uint32_t i = 0; i < count && layout != Layout::Gguf; ++i) {
      const uint64_t from = gguf.bytes / count, to = made.bytes / count;
      const Call call = CallMaker{}.pack({gguf.buffer, i * from, from},
                                         {type, layout, n, depth, 1, {wanted.buffer, i * to, to}});
      const KernelRow* row = nullptr;
      REQUIRE(choose_row({&call, 1}, 1, {&harness.info(), true}, &row).ok());
      Launch launch;
      REQUIRE(harness.prepare({&call, 1}, *row, 1, &launch).ok());
      REQUIRE(harness.launch(launch).ok());
    }
    std::vector<uint8_t> found(made.bytes), expected(made.bytes);
    REQUIRE(harness.read({&made, 1}, found.data()).ok());
    REQUIRE(harness.read({&wanted, 1}, expected.data()).ok());
    CHECK(found == expected);
  }
  if (test::on_cpu()) CHECK(packed > 0);
}
