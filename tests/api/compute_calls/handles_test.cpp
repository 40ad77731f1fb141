// Handles of greta_compute.h: what is closed, foreign or NULL is refused, and what is in use stays.
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/compute_rig.h"

using namespace greta;
using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("compute handles: NULL is an argument error everywhere, or does nothing", "[compute]") {
  greta_compute_close(nullptr);
  greta_compute* compute = nullptr;
  greta_buffer buffer = {};
  greta_stream stream = {};
  greta_timeline timeline = {};
  CHECK(greta_compute_open(nullptr, nullptr, &compute) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_compute_describe(nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_open(nullptr, nullptr, &buffer) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_close(nullptr, buffer) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_describe(nullptr, buffer, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_write(nullptr, buffer, 0, nullptr, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_read(nullptr, buffer, 0, nullptr, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_open(nullptr, &stream) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_close(nullptr, stream) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_copy(nullptr, stream, buffer, 0, buffer, 0, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_fill(nullptr, stream, buffer, 0, 0, 0) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_submit(nullptr, stream) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_wait(nullptr, stream) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_timeline_open(nullptr, nullptr, &timeline) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_timeline_close(nullptr, timeline) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_signal(nullptr, stream, timeline, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_wait_for(nullptr, stream, timeline, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_timeline_wait(nullptr, timeline, 1) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_timeline_elapsed(nullptr, timeline, 1, 1, nullptr) == GRETA_ERROR_ARGUMENT);

  ComputeRig rig;
  CHECK(greta_compute_open(rig.runtime, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_compute_describe(rig.compute, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_open(rig.compute, nullptr, &buffer) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_open(rig.compute, nullptr) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_timeline_open(rig.compute, nullptr, nullptr) == GRETA_ERROR_ARGUMENT);
  const greta_buffer there = rig.buffer(4);
  CHECK(greta_buffer_write(rig.compute, there, 0, nullptr, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_read(rig.compute, there, 0, nullptr, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_write(rig.compute, there, 4, nullptr, 0) == GRETA_OK);
  CHECK(greta_buffer_close(rig.compute, {}) == GRETA_OK);
  CHECK(greta_stream_close(rig.compute, {}) == GRETA_OK);
  CHECK(greta_timeline_close(rig.compute, {}) == GRETA_OK);
}

TEST_CASE("compute handles: a device that is not there, options that are none", "[compute]") {
  ComputeRig rig;
  greta_compute* other = nullptr;
  auto options = sized<greta_compute_options>();
  options.device = 7;
  CHECK(greta_compute_open(rig.runtime, &options, &other) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("no device 7"));
  options.device = 0;
  options.struct_size = 3;
  CHECK(greta_compute_open(rig.runtime, &options, &other) == GRETA_ERROR_ARGUMENT);
  greta_timeline timeline;
  auto timed = sized<greta_timeline_options>();
  timed.timed = 2;
  CHECK(greta_timeline_open(rig.compute, &timed, &timeline) == GRETA_ERROR_ARGUMENT);
}

TEST_CASE("compute handles: a handle that was closed is found out for ever", "[compute]") {
  ComputeRig rig;
  const greta_buffer first = rig.buffer(64);
  REQUIRE(greta_buffer_close(rig.compute, first) == GRETA_OK);
  const greta_buffer second = rig.buffer(64);  // in the same place
  auto info = sized<greta_buffer_info>();
  CHECK(greta_buffer_close(rig.compute, first) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("was closed or never opened"));
  CHECK(greta_buffer_describe(rig.compute, first, &info) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_copy(rig.compute, rig.stream, second, 0, first, 0, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_copy(rig.compute, rig.stream, first, 0, second, 0, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_describe(rig.compute, second, &info) == GRETA_OK);
  greta_stream closed;
  REQUIRE(greta_stream_open(rig.compute, &closed) == GRETA_OK);
  REQUIRE(greta_stream_close(rig.compute, closed) == GRETA_OK);
  CHECK(greta_stream_close(rig.compute, closed) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_wait(rig.compute, closed) == GRETA_ERROR_ARGUMENT);
  greta_timeline timeline;
  REQUIRE(greta_timeline_open(rig.compute, nullptr, &timeline) == GRETA_OK);
  REQUIRE(greta_timeline_close(rig.compute, timeline) == GRETA_OK);
  CHECK(greta_timeline_wait(rig.compute, timeline, 0) == GRETA_ERROR_ARGUMENT);
}

TEST_CASE("compute handles: of another kind, another compute, another runtime, or made up", "[compute]") {
  ComputeRig rig, other;
  auto info = sized<greta_buffer_info>();
  const greta_buffer foreign = other.buffer(64), ours = rig.buffer(64);
  CHECK(greta_buffer_describe(rig.compute, foreign, &info) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("belongs to another compute"));
  CHECK(greta_buffer_close(rig.compute, foreign) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_copy(rig.compute, rig.stream, ours, 0, foreign, 0, 4) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_fill(rig.compute, other.stream, ours, 0, 4, 0) == GRETA_ERROR_ARGUMENT);
  greta_compute* same_runtime = nullptr;
  REQUIRE(greta_compute_open(rig.runtime, nullptr, &same_runtime) == GRETA_OK);
  CHECK(greta_buffer_describe(same_runtime, ours, &info) == GRETA_ERROR_ARGUMENT);
  greta_compute_close(same_runtime);
  CHECK(greta_buffer_describe(rig.compute, {rig.stream.owner, rig.stream.number}, &info) ==
        GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_wait(rig.compute, {ours.owner, ours.number}) == GRETA_ERROR_ARGUMENT);
  for (const uint64_t number : {uint64_t(1), ~uint64_t(0), uint64_t(1) << 32 | 77, ours.number + 1})
    CHECK(greta_buffer_describe(rig.compute, {ours.owner, number}, &info) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_buffer_describe(rig.compute, {}, &info) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("{0}"));
}

TEST_CASE("compute handles: a stream that another thread is using is refused", "[compute]") {
  ComputeRig rig;
  const greta_buffer buffer = rig.buffer(64);
  std::shared_ptr<StreamObject> stream;
  REQUIRE(rig.compute->find(rig.stream, &stream).ok());
  stream->busy = true;
  CHECK(greta_stream_fill(rig.compute, rig.stream, buffer, 0, 64, 1) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("another thread"));
  CHECK(greta_stream_wait(rig.compute, rig.stream) == GRETA_ERROR_ARGUMENT);
  CHECK(greta_stream_close(rig.compute, rig.stream) == GRETA_ERROR_ARGUMENT);
  stream->busy = false;
  CHECK(greta_stream_fill(rig.compute, rig.stream, buffer, 0, 64, 1) == GRETA_OK);
  rig.wait();
  CHECK(rig.get<uint32_t>(buffer, 16) == std::vector<uint32_t>(16, 1));
}

TEST_CASE("compute handles: the table gives each number once", "[compute]") {
  struct Plain : Object {
    Plain() : Object(Kind::Buffer) {}
  };
  ObjectTable table;
  std::set<uint64_t> numbers;
  std::vector<uint64_t> open;
  for (uint32_t i = 0; i < 3000; ++i) {
    const auto object = std::make_shared<Plain>();
    REQUIRE(table.add(object).ok());
    CHECK(numbers.insert(object->number).second);
    open.push_back(object->number);
    if (i % 3 == 0) continue;
    std::shared_ptr<Object> removed;
    const size_t which = (i * 7919u) % open.size();
    REQUIRE(table.remove(open[which], Object::Kind::Buffer, &removed).ok());
    CHECK(!table.find(open[which], Object::Kind::Buffer, &removed).ok());
    open.erase(open.begin() + long(which));
  }
  CHECK(table.count(Object::Kind::Buffer) == open.size());
}
