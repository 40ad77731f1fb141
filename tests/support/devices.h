// The devices that the conformance tests run on. A new backend adds one line to device_cases().
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <memory>
#include <vector>

#include "places.h"
#include "runtime/runtime.h"

// A device, and the device inside if it wraps one. They are closed in this order.
struct OpenDevice {
  std::unique_ptr<greta::Device> inner, device;
  greta::Device& operator*() const { return *device; }
  greta::Device* operator->() const { return device.get(); }
};

struct DeviceCase {
  const char* name;
  bool computes;  // launches have results
  bool checked;   // it is the checked device, which reports what others let pass
  OpenDevice (*open)();
};

inline greta::DeviceOptions with_threads(uint32_t threads) {
  greta::DeviceOptions options;
  options.threads = threads;
  return options;
}

inline OpenDevice open_named(const char* name, uint32_t threads) {
  greta::Device* device = nullptr;
  REQUIRE(greta::open_device(name, with_threads(threads), &device).ok());
  return {nullptr, std::unique_ptr<greta::Device>(device)};
}

inline OpenDevice open_null(const greta::NullOptions& options = {}) {
  greta::Device* device = nullptr;
  REQUIRE(greta::open_null_device(options, &device).ok());
  return {nullptr, std::unique_ptr<greta::Device>(device)};
}

inline OpenDevice open_checked(OpenDevice inner) {
  greta::Device* device = nullptr;
  REQUIRE(greta::open_checked_device(inner.device.get(), &device).ok());
  return {std::move(inner.device), std::unique_ptr<greta::Device>(device)};
}

// Returns true if device 0 of a backend can be used here and this build has kernels for it.
bool is_there(const char* backend, const greta::DeviceOptions& options = {});

// Options for the mock of HIP's runtime (tests/mock_hip).
inline greta::DeviceOptions with_mock_hip() {
  greta::DeviceOptions options;
  options.driver_library = MOCK_HIP_LIBRARY;
  return options;
}

inline OpenDevice open_mock_hip() {
  greta::Device* device = nullptr;
  const greta::Status status = greta::open_device("hip0", with_mock_hip(), &device);
  INFO(greta::error_text());
  REQUIRE(status.ok());
  return {nullptr, std::unique_ptr<greta::Device>(device)};
}

inline const std::vector<DeviceCase>& device_cases() {
  static const std::vector<DeviceCase> cases = [] {
    std::vector<DeviceCase> list = {
        {"null", false, false, [] { return open_null(); }},
        {"cpu, 1 thread", true, false, [] { return open_named("cpu", 1); }},
        {"cpu, 3 threads", true, false, [] { return open_named("cpu", 3); }},
        {"checked over cpu", true, true, [] { return open_checked(open_named("cpu", 2)); }},
    };
    if (is_there("hip", with_mock_hip())) {
      list.push_back({"hip", true, false, [] { return open_mock_hip(); }});
      list.push_back({"checked over hip", true, true, [] { return open_checked(open_mock_hip()); }});
    }
    if (!is_there("vulkan")) return list;
    list.push_back({"vulkan", true, false, [] { return open_named("vulkan0", 0); }});
    list.push_back(
        {"checked over vulkan", true, true, [] { return open_checked(open_named("vulkan0", 0)); }});
    return list;
  }();
  return cases;
}

// Runs the rest of the test once for each device.
#define FOR_EACH_DEVICE(variable)                                                       \
  const DeviceCase& variable = GENERATE(Catch::Generators::from_range(device_cases())); \
  INFO("device: " << variable.name)

// A stream that is closed with its scope.
inline std::unique_ptr<greta::Stream> new_stream(greta::Device& device) {
  greta::Stream* stream = nullptr;
  REQUIRE(device.create_stream(&stream).ok());
  return std::unique_ptr<greta::Stream>(stream);
}

struct OwnedEvent {
  greta::Device& device;
  greta::Event event;
  explicit OwnedEvent(greta::Device& owner, bool timed = true) : device(owner) {
    REQUIRE(device.create_event(&event, timed).ok());
  }
  ~OwnedEvent() { device.destroy(event); }
};

struct OwnedGraph {
  greta::Device& device;
  greta::Graph graph;
  ~OwnedGraph() { device.destroy(graph); }
};

// Allocates `words` words of device memory.
struct Words {
  greta::DeviceMemory memory;
  Words(greta::Device& device, uint64_t words, greta::Memory kind = greta::Memory::Device) {
    REQUIRE(memory.allocate(device, words * 4, kind).ok());
  }
  greta::Slice slice(uint64_t first, uint64_t count) const { return memory.slice(first * 4, count * 4); }
  greta::Slice all() const { return memory.all(); }
};

std::vector<uint32_t> read_words(greta::Device& device, const greta::Slice& from);
void write_words(greta::Device& device, const greta::Slice& to, const std::vector<uint32_t>& words);
