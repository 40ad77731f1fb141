// Launches of a captured graph that wait for each other by counters instead of barriers
// (backends/vulkan/chain.h).
#include <unistd.h>

#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "support/device_kernels.h"
#include "support/test_device.h"
#include "support/vulkan_faults.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;
using greta::test::kVulkanChains;
namespace fs = std::filesystem;

namespace {

constexpr uint32_t kStages = 10, kWords = 5000;

bool has_chains(const OpenDevice& device) { return device->info().features & kVulkanChains; }

// Records b = a + a, a = b + b and so on: each stage reads what all groups of the one before it wrote. With
// `alone` a launch in the middle takes no part in chains.
struct Doubling {
  Device& device;
  TestKernels kernels;
  Words a, b, aside;
  std::unique_ptr<Stream> stream;
  OwnedGraph owned;

  explicit Doubling(const OpenDevice& open)
      : device(*open),
        kernels(device),
        a(device, kWords),
        b(device, kWords),
        aside(device, kWords),
        stream(new_stream(device)),
        owned{device, {}} {}

  void capture(bool alone) {
    REQUIRE(stream->begin_capture().ok());
    for (uint32_t i = 0; i < kStages; ++i) {
      const Slice from = i % 2 ? b.all() : a.all(), to = i % 2 ? a.all() : b.all();
      REQUIRE(stream->barrier().ok());
      if (alone && i == kStages / 2) {  // it runs beside a launch that waits
        REQUIRE(kernels.add_words(*stream, from, from, to).ok());
        REQUIRE(kernels.write_index(*stream, aside.all(), 0, i).ok());
        continue;
      }
      REQUIRE(kernels.add_words(*stream, from, from, to).ok());
    }
    REQUIRE(stream->end_capture(&owned.graph).ok());
  }
  // Returns the value of all words after this many replays.
  uint32_t run(uint32_t replays) {
    write_words(device, a.all(), std::vector<uint32_t>(kWords, 3));
    for (uint32_t i = 0; i < replays; ++i) REQUIRE(stream->replay(owned.graph).ok());
    REQUIRE(stream->wait().ok());
    const std::vector<uint32_t> words = read_words(device, a.all());
    for (const uint32_t word : words) REQUIRE(word == words[0]);
    return words[0];
  }
};

}  // namespace

TEST_CASE("chain: launches of a captured graph follow each other without barriers", "[runtime][vulkan]") {
  Faults faults;
  for (const uint32_t mask : {~0u, ~kVulkanChains}) {
    const OpenDevice device = faults.opened(mask);
    if (mask == ~0u && !has_chains(device)) SKIP("the device has no chains");
    REQUIRE(has_chains(device) == (mask == ~0u));
    Doubling doubling(device);
    faults.barriers();
    doubling.capture(false);
    CHECK(faults.barriers() == (has_chains(device) ? 2 : int(kStages) + 1));  // one is at the end
    CHECK(doubling.run(1) == 3u << kStages);
    CHECK(doubling.run(2) == 3u << 2 * kStages);
    for (uint32_t i = 0; i < 50; ++i) REQUIRE(doubling.run(1) == 3u << kStages);
  }
}

TEST_CASE("chain: a launch that takes no part is ordered by barriers", "[runtime][vulkan]") {
  Faults faults;
  const OpenDevice device = faults.opened();
  if (!has_chains(device)) SKIP("the device has no chains");
  Doubling doubling(device);
  faults.barriers();
  doubling.capture(true);
  CHECK(faults.barriers() == 4);  // at the beginning, before that launch, after its stage, at the end
  CHECK(doubling.run(2) == 3u << 2 * kStages);
  CHECK(read_words(*device, doubling.aside.all())[7] == kStages / 2);
}

TEST_CASE("chain: a driver that does not keep the order of launches gets barriers", "[runtime][vulkan]") {
  Faults faults;
  if (!has_chains(faults.opened())) SKIP("the device has no chains");
  faults.fail_once("vkCmdDispatch", 10);  // the launch does not run, so the next stage waits in vain
  const OpenDevice device = faults.opened();
  CHECK(!has_chains(device));
  Doubling doubling(device);
  doubling.capture(false);
  CHECK(doubling.run(2) == 3u << 2 * kStages);
}

TEST_CASE("chain: a device that the check loses is opened again without", "[runtime][vulkan]") {
  Faults faults;
  if (!has_chains(faults.opened())) SKIP("the device has no chains");
  faults.fail_once("vkQueueSubmit2", 1, kDeviceLost);  // the first submission is that of prove_memory()
  CHECK(!has_chains(faults.opened()));
  CHECK(has_chains(faults.opened()));
}

TEST_CASE("chain: a check that went well is not made again", "[runtime][vulkan]") {
  Faults faults;
  const fs::path folder = fs::temp_directory_path() / ("greta-chain-proof-" + std::to_string(::getpid()));
  fs::remove_all(folder);
  const std::string name = folder.string();
  if (!has_chains(faults.opened(~0u, name.c_str()))) SKIP("the device has no chains");
  faults.fail("vkCreateComputePipelines", 0, kInitializationFailed);
  CHECK(has_chains(faults.opened(~0u, name.c_str())));
  CHECK(!has_chains(faults.opened()));  // without the folder it is, and its kernel is refused
  faults.none();
  fs::remove_all(folder);
}

TEST_CASE("chain: what waits in vain ends as an error, and the device has no chains after it",
          "[runtime][vulkan]") {
  Faults faults;
  const fs::path folder = fs::temp_directory_path() / ("greta-chain-" + std::to_string(::getpid()));
  fs::remove_all(folder);
  const std::string name = folder.string();
  {
    const OpenDevice device = faults.opened(~0u, name.c_str());
    if (!has_chains(device)) SKIP("the device has no chains");
    Doubling doubling(device);
    faults.fail_once("vkCmdDispatch", 4);
    doubling.capture(false);
    REQUIRE(doubling.stream->replay(doubling.owned.graph).ok());
    CHECK(doubling.stream->wait().code == Code::Device);
    CHECK_THAT(error_text(), ContainsSubstring("waited in vain") && ContainsSubstring("by barriers"));
    CHECK(doubling.stream->submit().code == Code::Device);
  }
  const OpenDevice again = faults.opened(~0u, name.c_str());
  CHECK(!has_chains(again));
  Doubling doubling(again);
  doubling.capture(false);
  CHECK(doubling.run(1) == 3u << kStages);
  CHECK(has_chains(faults.opened()));  // without the folder nothing remembers the failure
  fs::remove_all(folder);
}
