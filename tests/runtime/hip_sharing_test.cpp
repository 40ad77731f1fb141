// The HIP backend in a process that it shares, over the mock runtime: captures of others, graphs by version,
// and how many streams are open.
#include <atomic>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <thread>

#include "backends/hip/api.h"
#include "support/device_kernels.h"
#include "support/hip_orders.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

namespace {

// What another library of the process, such as PyTorch, calls in the same runtime.
struct OtherCaller {
  DynamicLibrary library;
  OtherCaller() { REQUIRE(library.open(MOCK_HIP_LIBRARY).ok()); }
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) {
    auto* const function = reinterpret_cast<int (*)(Arguments...)>(library.find(name));
    REQUIRE(function);
    return function(arguments...);
  }
  size_t streams() { return reinterpret_cast<size_t (*)()>(library.find("mock_hip_streams"))(); }
};

// Has y[i] = 3 i + base made by equal launches, then 77 in y[0], by a graph that is replayed. It asserts
// nothing, since Catch2 does not let threads do so at the same time.
struct Replays {
  Device& device;
  TestKernels kernels{device};
  Words y{device, 300}, back{device, 300, Memory::Readback};
  std::unique_ptr<Stream> stream = new_stream(device);
  explicit Replays(Device& of) : device(of) {}

  bool right(uint32_t base, uint32_t launches = 1) {
    Graph graph;
    bool ok = stream->fill(y.all(), 1).ok() && stream->begin_capture().ok();
    for (uint32_t i = 0; i < launches; ++i) ok = ok && kernels.write_index(*stream, y.all(), 3, base).ok();
    ok = ok && stream->barrier().ok() && stream->fill(y.slice(0, 1), 77).ok() &&
         stream->end_capture(&graph).ok() && stream->replay(graph).ok() && stream->barrier().ok() &&
         stream->copy(back.all(), y.all()).ok() && stream->wait().ok();
    device.destroy(graph);
    const auto* const words = static_cast<const uint32_t*>(back.memory.buffer().mapped);
    return ok && words[0] == 77 && words[299] == 3 * 299 + base;
  }
};

bool replays_right(Device& device, uint32_t base) { return Replays(device).right(base); }

std::unique_ptr<Device> opened(HipOrders& orders, const DeviceOptions& options) {
  Device* device = nullptr;
  const Status status = orders.open(&device, options);
  INFO(error_text());
  REQUIRE(status.ok());
  return std::unique_ptr<Device>(device);
}

}  // namespace

TEST_CASE("hip: GRETA's calls and a capture of another thread do not concern each other", "[runtime][hip]") {
  HipOrders orders;
  OtherCaller other;
  const OpenDevice device = open_mock_hip();
  void *stream = nullptr, *graph = nullptr;
  int began = -1;
  std::thread([&] {
    (void)other.call("hipStreamCreateWithFlags", &stream, 1u);
    constexpr int kGlobal = 0;
    began = other.call("hipStreamBeginCapture", stream, kGlobal);
  }).join();
  REQUIRE(began == 0);
  CHECK(replays_right(*device, 5));
  CHECK(other.call("hipStreamEndCapture", stream, &graph) == 0);  // no call of GRETA's spoilt it
  REQUIRE(graph);
  CHECK(other.call("hipGraphDestroy", graph) == 0);
  CHECK(other.call("hipStreamDestroy", stream) == 0);
  int mode = 0;
  REQUIRE(other.call("hipThreadExchangeStreamCaptureMode", &mode) == 0);
  CHECK(mode == 0);  // as it was before
}

TEST_CASE("hip: a call that a capture of another thread forbids is made again", "[runtime][hip]") {
  HipOrders orders;
  const char* order = GENERATE("hipEventQuery 0 900 3", "hipEventQuery 0 901 3", "hipEventRecord 0 900 2",
                               "hipModuleLaunchKernel 0 900 2", "hipGraphLaunch 0 901 2",
                               "hipMemcpyAsync 0 900 2", "hipMemsetD32Async 0 900 1");
  INFO(order);
  const OpenDevice device = open_mock_hip();
  orders.set("FAIL", order);
  CHECK(replays_right(*device, 7));
  orders.none();
  CHECK(replays_right(*device, 8));
}

TEST_CASE("hip: a capture that never ends is an error, and the device is not lost", "[runtime][hip]") {
  HipOrders orders;
  DeviceOptions options = with_mock_hip();
  options.wait_limit_ms = 20;
  const auto device = opened(orders, options);
  const auto stream = new_stream(*device);
  Words y(*device, 64);
  REQUIRE(stream->fill(y.all(), 5).ok());
  orders.set("FAIL", "hipEventQuery 0 900");
  CHECK(stream->wait().code == Code::Device);
  CHECK_THAT(error_text(), ContainsSubstring("StreamCaptureUnsupported"));
  orders.none();
  REQUIRE(stream->wait().ok());
  CHECK(read_words(*device, y.all())[9] == 5);
}

TEST_CASE("hip: before 7.14 the captures of a process take turns", "[runtime][hip]") {
  HipOrders orders;
  orders.set("ARCH", "gfx942,gfx942");
  orders.set("VERSION", "71326333");
  NamedDevice devices[2];
  for (uint32_t i = 0; i < 2; ++i)
    REQUIRE(open_device(i ? "hip1" : "hip0", with_mock_hip(), &devices[i]).ok());
  std::atomic<uint32_t> wrong = 0;
  {
    Replays replays[2] = {Replays(*devices[0].device), Replays(*devices[1].device)};
    const auto capture_often = [&](uint32_t i) {
      for (uint32_t round = 0; round < 20; ++round) wrong += !replays[i].right(round, 50);
    };
    std::thread first(capture_often, 0), second(capture_often, 1);
    first.join(), second.join();
  }
  CHECK(wrong == 0);
  for (const NamedDevice& named : devices) delete named.device;
}

TEST_CASE("hip: graphs are made from 7.2.1 on, or as the caller says", "[runtime][hip]") {
  HipOrders orders;
  struct Case {
    const char* version;
    Graphs wanted;
    bool made;
  };
  for (const Case& c : {Case{"60443484", Graphs::Default, false}, Case{"70226015", Graphs::Default, false},
                        Case{"70226015", Graphs::On, true}, Case{"70253211", Graphs::Default, true},
                        Case{"71526333", Graphs::Default, true}, Case{"71526333", Graphs::Off, false}}) {
    INFO(c.version << " " << int(c.wanted));
    orders.set("VERSION", c.version);
    std::string log;
    DeviceOptions options = with_mock_hip();
    options.graphs = c.wanted;
    options.log = {[](void* to, uint32_t, const char* text) { *static_cast<std::string*>(to) += text; },
                   &log};
    const auto device = opened(orders, options);
    CHECK((log.find("graphs of the HIP runtime") != log.npos) == c.made);
    orders.set("FAIL", "hipStreamBeginCapture 0 1");  // who tries to make a graph is told so
    CHECK(replays_right(*device, 3));
    CHECK((log.find("takes no graph") != log.npos) == c.made);
    orders.none();
  }
}

TEST_CASE("hip: a Radeon has one stream open, and none when nothing uses it", "[runtime][hip]") {
  HipOrders orders;
  OtherCaller other;
  orders.set("ARCH", "gfx1100");
  Device* device = nullptr;
  if (!orders.open(&device).ok()) SKIP(error_text());
  const std::unique_ptr<Device> radeon(device);
  const size_t before = other.streams();  // of devices that were lost
  {
    const auto first = new_stream(*radeon), second = new_stream(*radeon), third = new_stream(*radeon);
    CHECK(replays_right(*radeon, 4));
    CHECK(other.streams() == before + 1);
    // What one stream waits for, another gives later, and both are the same to the driver.
    Words y(*radeon, 64), z(*radeon, 64);
    OwnedEvent event(*radeon);
    REQUIRE(first->fill(y.all(), 6).ok());
    REQUIRE(first->signal(event.event).ok());
    REQUIRE(second->wait_for(event.event).ok());
    REQUIRE(second->copy(z.all(), y.all()).ok());
    REQUIRE(second->submit().ok());
    REQUIRE(first->submit().ok());
    REQUIRE(second->wait().ok());
    CHECK(read_words(*radeon, z.all())[63] == 6);
  }
  CHECK(other.streams() == before);
  orders.set("ARCH", "gfx942");
  const OpenDevice instinct = open_mock_hip();
  const auto first = new_stream(*instinct), second = new_stream(*instinct);
  CHECK(other.streams() == before + 2);
}
