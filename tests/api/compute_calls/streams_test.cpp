// Buffers, streams and timelines of greta_compute.h.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>
#include <thread>

#include "support/compute_rig.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;
using Numbers = std::vector<uint32_t>;

TEST_CASE("compute buffers: a limit, statistics, sizes that cannot be", "[compute]") {
  ComputeRig rig(uint64_t(40) << 20);
  auto options = sized<greta_buffer_options>();
  greta_buffer refused = {};
  for (const uint64_t bytes : {uint64_t(0), ~uint64_t(0), uint64_t(1) << 62}) {
    options.bytes = bytes;
    CHECK(greta_buffer_open(rig.compute, &options, &refused) == GRETA_ERROR_ARGUMENT);
  }
  options.bytes = 4;
  for (const int kind : {-1, 3, 1 << 30}) {
    memcpy(&options.memory, &kind, sizeof kind);
    CHECK(greta_buffer_open(rig.compute, &options, &refused) == GRETA_ERROR_ARGUMENT);
  }
  CHECK(rig.info().allocated_bytes == 0);
  const greta_buffer large = rig.buffer(30u << 20), small = rig.buffer(1000, GRETA_MEMORY_UPLOAD);
  auto info = rig.info();
  CHECK(info.buffers == 2);
  CHECK(info.streams == 1);
  CHECK(info.buffer_bytes == (30u << 20) + 1000);
  CHECK(info.allocated_bytes >= info.buffer_bytes);
  CHECK(info.allocated_bytes <= uint64_t(40) << 20);
  CHECK(info.free_bytes <= (uint64_t(40) << 20) - info.allocated_bytes);
  options = sized<greta_buffer_options>();
  options.bytes = 20u << 20;
  CHECK(greta_buffer_open(rig.compute, &options, &refused) == GRETA_ERROR_MEMORY);
  CHECK_THAT(greta_error_text(), ContainsSubstring("20971520 bytes"));
  CHECK(rig.info().buffers == 2);
  REQUIRE(greta_buffer_close(rig.compute, large) == GRETA_OK);
  REQUIRE(greta_buffer_open(rig.compute, &options, &refused) == GRETA_OK);
  auto of = sized<greta_buffer_info>();
  REQUIRE(greta_buffer_describe(rig.compute, small, &of) == GRETA_OK);
  CHECK(of.bytes == 1000);
  CHECK(of.memory == GRETA_MEMORY_UPLOAD);
  CHECK(reinterpret_cast<uintptr_t>(of.mapped) % 256 == 0);
  memset(of.mapped, 1, 1000);
  REQUIRE(greta_buffer_describe(rig.compute, refused, &of) == GRETA_OK);
  CHECK(!of.mapped);
  CHECK(rig.info().peak_bytes >= 30u << 20);
}

TEST_CASE("compute streams: ranges that leave a buffer, overlap or are not aligned", "[compute]") {
  ComputeRig rig;
  const greta_buffer a = rig.put(Numbers{1, 2, 3, 4, 5, 6, 7, 8}), b = rig.put(Numbers(8, 9));
  const auto copy = [&](greta_buffer to, uint64_t to_offset, greta_buffer from, uint64_t offset,
                        uint64_t bytes) {
    return greta_stream_copy(rig.compute, rig.stream, to, to_offset, from, offset, bytes);
  };
  const uint64_t huge = ~uint64_t(0);
  CHECK(copy(b, 0, a, 0, 33) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("0 + 33") && ContainsSubstring("of 32 bytes"));
  CHECK(copy(b, 32, a, 0, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(copy(b, huge, a, 0, 2) == GRETA_ERROR_ARGUMENT);
  CHECK(copy(b, 2, a, 0, huge) == GRETA_ERROR_ARGUMENT);
  CHECK(copy(b, 0, a, huge - 1, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(copy(a, 4, a, 0, 8) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("overlap"));
  const auto fill = [&](uint64_t offset, uint64_t bytes) {
    return greta_stream_fill(rig.compute, rig.stream, b, offset, bytes, 0);
  };
  CHECK(fill(2, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(fill(0, 6) == GRETA_ERROR_ARGUMENT);
  CHECK(fill(28, 8) == GRETA_ERROR_ARGUMENT);
  CHECK(fill(huge - 3, 8) == GRETA_ERROR_ARGUMENT);
  uint32_t word = 0;
  CHECK(greta_buffer_read(rig.compute, b, 30, &word, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_write(rig.compute, b, huge, &word, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(fill(32, 0) == GRETA_OK);
  CHECK(copy(b, 32, a, 32, 0) == GRETA_OK);
  CHECK(copy(a, 16, a, 0, 16) == GRETA_OK);  // the stream works on after all of these
  rig.wait();
  CHECK(rig.get<uint32_t>(a, 8) == Numbers{1, 2, 3, 4, 1, 2, 3, 4});
  CHECK(rig.get<uint32_t>(b, 8) == Numbers(8, 9));
}

// Random copies and fills, of which the stream must find the order, against a model of the host.
static void run_random(ComputeRig& rig, greta_stream stream, uint32_t seed, int rounds) {
  constexpr uint32_t kBuffers = 4, kWords = 64;
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return uint32_t(random() % n); };
  std::vector<greta_buffer> buffers;
  std::vector<Numbers> model;
  for (uint32_t i = 0; i < kBuffers; ++i) {
    model.emplace_back(kWords, i);
    buffers.push_back(rig.put(model.back()));
  }
  uint32_t wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    const uint32_t to = below(kBuffers), from = below(kBuffers), count = 1 + below(20),
                   to_first = below(kWords - count), first = below(kWords - count);
    if (below(3) == 0) {
      wrong += greta_stream_fill(rig.compute, stream, buffers[to], to_first * 4, count * 4, uint32_t(i)) != 0;
      std::fill_n(model[to].begin() + to_first, count, uint32_t(i));
    } else if (to != from) {
      wrong += greta_stream_copy(rig.compute, stream, buffers[to], to_first * 4, buffers[from], first * 4,
                                 count * 4) != 0;
      std::copy_n(model[from].begin() + first, count, model[to].begin() + to_first);
    }
    if (below(40) == 0) wrong += greta_stream_submit(rig.compute, stream) != 0;
  }
  wrong += greta_stream_wait(rig.compute, stream) != 0;
  for (uint32_t i = 0; i < kBuffers; ++i) {
    Numbers read(kWords);
    wrong += greta_buffer_read(rig.compute, buffers[i], 0, read.data(), kWords * 4) != 0;
    wrong += read != model[i];
  }
  CHECK(wrong == 0);
}

TEST_CASE("compute streams: calls have the effects of their order", "[compute]") {
  ComputeRig rig;
  for (uint32_t seed = 1; seed <= 5; ++seed) run_random(rig, rig.stream, seed, 300);
}

TEST_CASE("compute streams: the checked device misses no barrier", "[compute]") {
  ComputeRig rig(open_checked(open_named("cpu", 2)));
  for (uint32_t seed = 1; seed <= 3; ++seed) run_random(rig, rig.stream, seed, 200);
}

TEST_CASE("compute streams: threads with streams of their own share a compute", "[compute]") {
  ComputeRig rig;
  std::vector<std::thread> threads;
  std::atomic<uint32_t> wrong{0};
  for (uint32_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      auto options = sized<greta_buffer_options>();
      options.bytes = 4096;
      greta_stream stream;
      greta_buffer a, b;
      bool fails = greta_stream_open(rig.compute, &stream) || greta_buffer_open(rig.compute, &options, &a) ||
                   greta_buffer_open(rig.compute, &options, &b);
      for (uint32_t i = 0; i < 50 && !fails; ++i) {
        Numbers words(1024);
        fails = greta_stream_fill(rig.compute, stream, a, 0, 4096, t * 1000 + i) ||
                greta_stream_copy(rig.compute, stream, b, 0, a, 0, 4096) ||
                greta_stream_wait(rig.compute, stream) ||
                greta_buffer_read(rig.compute, b, 0, words.data(), 4096) ||
                words != Numbers(1024, t * 1000 + i);
      }
      wrong += fails || greta_stream_close(rig.compute, stream) || greta_buffer_close(rig.compute, a) ||
               greta_buffer_close(rig.compute, b);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(rig.info().buffers == 0);
}

TEST_CASE("compute buffers: a buffer that is closed while work uses it stays until the wait", "[compute]") {
  ComputeRig rig;
  const greta_buffer from = rig.put(Numbers(1 << 20, 5)), to = rig.buffer(4 << 20);
  REQUIRE(greta_stream_copy(rig.compute, rig.stream, to, 0, from, 0, 4 << 20) == GRETA_OK);
  const uint64_t before = rig.info().allocated_bytes;
  REQUIRE(greta_buffer_close(rig.compute, from) == GRETA_OK);
  CHECK(rig.info().buffers == 1);
  CHECK(rig.info().allocated_bytes == before);
  const greta_buffer reuse = rig.put(Numbers(1 << 20, 6));  // would take its place
  rig.wait();
  CHECK(rig.get<uint32_t>(to, 1 << 20) == Numbers(1 << 20, 5));
  CHECK(rig.get<uint32_t>(reuse, 1) == Numbers{6});
  // All may be closed, and work that was never waited for ends before the memory goes.
  REQUIRE(greta_stream_copy(rig.compute, rig.stream, reuse, 0, to, 0, 4 << 20) == GRETA_OK);
  REQUIRE(greta_stream_submit(rig.compute, rig.stream) == GRETA_OK);
  for (const greta_buffer each : {reuse, to}) REQUIRE(greta_buffer_close(rig.compute, each) == GRETA_OK);
  REQUIRE(greta_stream_close(rig.compute, rig.stream) == GRETA_OK);
  CHECK(rig.info().allocated_bytes < before);
}

TEST_CASE("compute timelines: values grow, come from one stream and are kept", "[compute]") {
  ComputeRig rig;
  greta_timeline timeline;
  greta_stream other;
  REQUIRE(greta_timeline_open(rig.compute, nullptr, &timeline) == GRETA_OK);
  REQUIRE(greta_stream_open(rig.compute, &other) == GRETA_OK);
  const auto signal = [&](greta_stream stream, uint64_t value) {
    return greta_stream_signal(rig.compute, stream, timeline, value);
  };
  CHECK(greta_timeline_wait(rig.compute, timeline, 0) == GRETA_OK);
  CHECK(greta_timeline_wait(rig.compute, timeline, 1) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("the value 1") && ContainsSubstring("is 0"));
  CHECK(greta_stream_wait_for(rig.compute, other, timeline, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(signal(rig.stream, 0) == GRETA_ERROR_ARGUMENT);
  REQUIRE(signal(rig.stream, 10) == GRETA_OK);
  CHECK(signal(rig.stream, 10) == GRETA_ERROR_ARGUMENT);
  CHECK(signal(other, 11) == GRETA_ERROR_ARGUMENT);
  REQUIRE(greta_stream_wait(rig.compute, other) == GRETA_OK);  // it signals nothing
  CHECK(greta_timeline_wait(rig.compute, timeline, 5) == GRETA_OK);
  uint64_t ns;
  CHECK(greta_timeline_elapsed(rig.compute, timeline, 10, 10, &ns) == GRETA_ERROR_ARGUMENT);
  for (uint64_t i = 0; i < GRETA_TIMELINE_SIGNALS; ++i) REQUIRE(signal(rig.stream, 11 + i) == GRETA_OK);
  CHECK(signal(rig.stream, 10000) == GRETA_ERROR_FULL);
  CHECK(greta_timeline_wait(rig.compute, timeline, 20) == GRETA_OK);
  for (uint64_t i = 0; i < 10; ++i) REQUIRE(signal(rig.stream, 1000 + i) == GRETA_OK);
  CHECK(signal(rig.stream, 10000) == GRETA_ERROR_FULL);
  rig.wait();
  for (uint64_t i = 0; i < GRETA_TIMELINE_SIGNALS; ++i) REQUIRE(signal(rig.stream, 20000 + i) == GRETA_OK);
  CHECK(greta_timeline_wait(rig.compute, timeline, 3) == GRETA_OK);
  // Where its stream is closed, another may go on.
  REQUIRE(greta_stream_close(rig.compute, rig.stream) == GRETA_OK);
  CHECK(signal(other, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(signal(other, 30000) == GRETA_OK);
  CHECK(greta_timeline_wait(rig.compute, timeline, 30000) == GRETA_OK);
}

TEST_CASE("compute timelines: a stream waits for another, and the host for both", "[compute]") {
  ComputeRig rig;
  greta_timeline made, read;
  greta_stream second;
  auto timed = sized<greta_timeline_options>();
  timed.timed = 1;
  REQUIRE(greta_timeline_open(rig.compute, &timed, &made) == GRETA_OK);
  REQUIRE(greta_timeline_open(rig.compute, nullptr, &read) == GRETA_OK);
  REQUIRE(greta_stream_open(rig.compute, &second) == GRETA_OK);
  constexpr uint32_t kWords = 1 << 16;
  const greta_buffer a = rig.buffer(kWords * 4), b = rig.buffer(kWords * 4);
  for (uint32_t i = 1; i <= 20; ++i) {
    if (i > 1) REQUIRE(greta_stream_wait_for(rig.compute, rig.stream, read, i - 1) == GRETA_OK);
    REQUIRE(greta_stream_fill(rig.compute, rig.stream, a, 0, kWords * 4, i) == GRETA_OK);
    REQUIRE(greta_stream_signal(rig.compute, rig.stream, made, i) == GRETA_OK);
    REQUIRE(greta_stream_wait_for(rig.compute, second, made, i) == GRETA_OK);
    REQUIRE(greta_stream_copy(rig.compute, second, b, 0, a, 0, kWords * 4) == GRETA_OK);
    REQUIRE(greta_stream_signal(rig.compute, second, read, i) == GRETA_OK);
    if (i % 7) continue;
    std::thread waits([&] { CHECK(greta_timeline_wait(rig.compute, read, i) == GRETA_OK); });
    waits.join();
    CHECK(rig.get<uint32_t>(b, kWords) == Numbers(kWords, i));
  }
  REQUIRE(greta_timeline_wait(rig.compute, read, 20) == GRETA_OK);
  CHECK(rig.get<uint32_t>(b, kWords) == Numbers(kWords, 20));
  uint64_t ns = 0;
  REQUIRE(greta_timeline_wait(rig.compute, made, 20) == GRETA_OK);
  CHECK(greta_timeline_elapsed(rig.compute, made, 1, 20, &ns) == GRETA_OK);
  CHECK(greta_timeline_elapsed(rig.compute, made, 20, 1, &ns) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_timeline_elapsed(rig.compute, made, 1, 21, &ns) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_timeline_elapsed(rig.compute, read, 1, 2, &ns) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_timeline_close(rig.compute, made) == GRETA_OK);
  CHECK(greta_timeline_close(rig.compute, read) == GRETA_OK);
}

TEST_CASE("compute streams: memory that fails and a device that is lost", "[compute]") {
  for (uint64_t at = 1; at <= 6; ++at) {
    ComputeRig rig(open_null({.fail_allocation = at}));
    auto options = sized<greta_buffer_options>();
    greta_buffer made;
    uint32_t failed = 0;
    for (const greta_memory memory : {GRETA_MEMORY_DEVICE, GRETA_MEMORY_UPLOAD, GRETA_MEMORY_READBACK})
      for (int i = 0; i < 2; ++i) {
        options.memory = memory;
        options.bytes = 20u << 20;
        const greta_status status = greta_buffer_open(rig.compute, &options, &made);
        failed += status == GRETA_ERROR_MEMORY;
        CHECK((status == GRETA_OK || status == GRETA_ERROR_MEMORY));
      }
    CHECK(failed == 1);
    CHECK(rig.info().buffers == 5);
    CHECK(rig.info().allocated_bytes == 5u * (20u << 20));
  }
  ComputeRig lost(open_null({.fail_submit = 1}));
  const greta_buffer buffer = lost.buffer(64);
  CHECK(greta_stream_fill(lost.compute, lost.stream, buffer, 0, 64, 1) == GRETA_OK);
  CHECK(greta_stream_wait(lost.compute, lost.stream) == GRETA_ERROR_DEVICE);
  CHECK(greta_stream_fill(lost.compute, lost.stream, buffer, 0, 64, 1) == GRETA_ERROR_DEVICE);
  CHECK_THAT(greta_error_text(), ContainsSubstring("forgotten"));
  CHECK(greta_buffer_close(lost.compute, buffer) == GRETA_OK);
}
