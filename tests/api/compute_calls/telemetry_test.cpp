// What a listener hears of computes, and how many kinds of calls a compute keeps.
#include <mutex>

#include "support/compute_ops.h"

using namespace greta;
using namespace greta::test;

namespace {

struct Heard {
  std::mutex mutex;
  std::vector<greta_span> spans;
  static void hear(void* user, const greta_span* span) {
    Heard& to = *static_cast<Heard*>(user);
    const std::lock_guard<std::mutex> lock(to.mutex);
    to.spans.push_back(*span);
  }
  std::vector<greta_span> take(greta_span_kind kind) {
    std::vector<greta_span> found;
    for (const greta_span& span : spans)
      if (span.kind == kind) found.push_back(span);
    return found;
  }
};

struct Listened {
  Heard heard;
  greta_runtime* runtime = nullptr;
  greta_compute* compute = nullptr;
  greta_stream stream = {};
  Listened() {
    auto options = sized<greta_runtime_options>();
    options.device = test_device();
    options.on_span = Heard::hear, options.span_user = &heard;
    REQUIRE(greta_runtime_open(&options, &runtime) == GRETA_OK);
    REQUIRE(greta_compute_open(runtime, nullptr, &compute) == GRETA_OK);
    REQUIRE(greta_stream_open(compute, &stream) == GRETA_OK);
  }
  ~Listened() { greta_compute_close(compute), greta_runtime_close(runtime); }
};

greta_softcap_call softcap_of(greta_buffer buffer, uint64_t rows, uint64_t width) {
  auto call = sized<greta_softcap_call>();
  call.cap = 1;
  call.x.rank = 2, call.x.shape[0] = rows, call.x.shape[1] = width, call.x.buffer = buffer;
  call.y = call.x;
  return call;
}

}  // namespace

TEST_CASE("compute telemetry: plans, submits, waits and copies are heard", "[compute]") {
  Listened on;
  auto options = sized<greta_buffer_options>();
  greta_buffer buffer = {};
  options.bytes = 1 << 16;
  REQUIRE(greta_buffer_open(on.compute, &options, &buffer) == GRETA_OK);
  const auto call = softcap_of(buffer, 4, 4096);
  const std::vector<float> values(4 * 4096, 0.5f);
  on.heard.spans.clear();
  REQUIRE(greta_buffer_write(on.compute, buffer, 0, values.data(), 1 << 16) == GRETA_OK);
  for (int round = 0; round < 3; ++round)
    REQUIRE(greta_softcap(on.compute, on.stream, &call, {}, 0) == GRETA_OK);
  REQUIRE(greta_stream_submit(on.compute, on.stream) == GRETA_OK);
  REQUIRE(greta_stream_wait(on.compute, on.stream) == GRETA_OK);
  CHECK(on.heard.take(GRETA_SPAN_PLAN).size() == 1);
  const auto compiled = on.heard.take(GRETA_SPAN_COMPILE), submits = on.heard.take(GRETA_SPAN_SUBMIT),
             waits = on.heard.take(GRETA_SPAN_WAIT);
  CHECK(!compiled.empty());
  uint32_t launches = 0;
  uint64_t bytes = 0;
  for (const greta_span& submit : submits) {
    launches += submit.launches, bytes += submit.bytes;
    CHECK((!submit.launches || submit.number == on.stream.number));
  }
  CHECK(launches == 3);
  CHECK(bytes >= 3u << 16);  // each launch moves x and y
  REQUIRE(!waits.empty());
  CHECK(waits.back().number == on.stream.number);
  const auto copies = on.heard.take(GRETA_SPAN_COPY);
  const bool mapped = on.compute->device().info().unified_memory;
  CHECK(copies.size() == (mapped ? 0 : 1));
  for (const greta_span& copy : copies) CHECK(copy.bytes == 1 << 16);
  for (const greta_span& span : on.heard.spans) {
    CHECK(span.end_ns >= span.begin_ns);
    CHECK(span.struct_size == sizeof span);
  }
  // A graph's run counts its launches.
  greta_graph graph = {};
  REQUIRE(greta_graph_begin(on.compute, on.stream) == GRETA_OK);
  for (int round = 0; round < 2; ++round)
    REQUIRE(greta_softcap(on.compute, on.stream, &call, {}, 0) == GRETA_OK);
  REQUIRE(greta_graph_end(on.compute, on.stream, &graph) == GRETA_OK);
  on.heard.spans.clear();
  for (int round = 0; round < 5; ++round)
    REQUIRE(greta_graph_run(on.compute, on.stream, graph, nullptr, 0) == GRETA_OK);
  REQUIRE(greta_stream_wait(on.compute, on.stream) == GRETA_OK);
  launches = 0;
  for (const greta_span& submit : on.heard.take(GRETA_SPAN_SUBMIT)) launches += submit.launches;
  CHECK(launches == 10);
}

TEST_CASE("compute recipes: the kinds of calls that are kept are limited, the last ones stay", "[compute]") {
  ComputeRig rig;
  if (!rig.compute->device().info().host_functions) SKIP("a driver would compile a thousand kernels");
  const size_t before = rig.compute->recipes.count();
  const greta_buffer buffer = rig.buffer(1 << 16);
  const auto often = softcap_of(buffer, 3, 777);
  const auto kept = [&](const Call& call, uint32_t bucket) {
    std::shared_ptr<const Recipe> recipe;
    REQUIRE(rig.compute->recipes.find(call, bucket, &recipe).ok());
    return recipe;
  };
  const Buffer any;
  const Slice operand = {&any, 0, 4};
  const auto call = CallMaker{}.cast(operand, operand, 777, {kCastF32, kCastF16});
  const auto first = kept(call, 3);
  for (uint32_t width = 1; width <= Recipes::kMost + 50; ++width) {
    const auto each = softcap_of(buffer, 1, width);
    rig.ok(greta_softcap_check(rig.compute, &each));
    if (width % 100 == 0) CHECK(kept(call, 3) == first);
  }
  CHECK(rig.compute->recipes.count() == Recipes::kMost);
  CHECK(before < Recipes::kMost);
  CHECK(kept(call, 3) == first);
  auto again = often;
  again.x = rig.tensor({3, 777}, std::vector<float>(3 * 777, 0.5f)), again.y = again.x;
  GRETA_RUN(rig, softcap, again);  // what was forgotten is planned anew
  for (const float value : rig.get(again.y, 3 * 777)) CHECK(std::abs(value - std::tanh(0.5f)) < 1e-6f);
}
