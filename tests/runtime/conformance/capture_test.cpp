#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/device_kernels.h"

using namespace greta;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a captured plan does not run until it is replayed, then as often as wanted", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  constexpr uint32_t kCount = 300;
  Words a(*device, kCount), b(*device, kCount);
  REQUIRE(stream->fill(a.all(), 1).ok());
  REQUIRE(stream->fill(b.all(), 0).ok());
  REQUIRE(stream->wait().ok());

  OwnedGraph owned{*device, {}};
  REQUIRE(stream->begin_capture().ok());
  REQUIRE(stream->barrier().ok());
  REQUIRE(kernels.add_words(*stream, a.all(), b.all(), b.all()).ok());  // b += 1
  REQUIRE(stream->end_capture(&owned.graph).ok());
  REQUIRE(stream->wait().ok());
  if (which.computes) CHECK(read_words(*device, b.all())[7] == 0);

  for (uint32_t i = 0; i < 500; ++i) {
    REQUIRE(stream->replay(owned.graph).ok());
    if (i % 3 == 0) REQUIRE(stream->submit().ok());
    if (i % 50 == 0) REQUIRE(stream->wait().ok());
  }
  REQUIRE(stream->wait().ok());
  if (!which.computes) return;
  const std::vector<uint32_t> words = read_words(*device, b.all());
  for (uint32_t i = 0; i < kCount; i += 37) CHECK(words[i] == 500);
}

TEST_CASE("a plan with fills, copies and launches, beside direct work", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  constexpr uint32_t kCount = 129;
  Words a(*device, kCount), b(*device, kCount), c(*device, kCount);
  OwnedGraph owned{*device, {}};
  REQUIRE(stream->begin_capture().ok());
  REQUIRE(stream->barrier().ok());
  REQUIRE(kernels.write_index(*stream, a.all(), 2).ok());
  REQUIRE(stream->fill(b.all(), 5).ok());
  REQUIRE(stream->barrier().ok());
  REQUIRE(kernels.add_words(*stream, a.all(), b.all(), b.all()).ok());
  REQUIRE(stream->barrier().ok());
  REQUIRE(stream->copy(c.all(), b.all()).ok());
  REQUIRE(stream->end_capture(&owned.graph).ok());
  for (uint32_t i = 0; i < 3; ++i) {
    REQUIRE(stream->replay(owned.graph).ok());
    REQUIRE(stream->barrier().ok());
    REQUIRE(kernels.add_words(*stream, c.all(), c.all(), c.all()).ok());  // doubles
    REQUIRE(stream->wait().ok());
  }
  if (which.computes) CHECK(read_words(*device, c.all())[100] == 2 * (200 + 5));
}

TEST_CASE("a plan that may be submitted in parts runs in order, as often as wanted", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  constexpr uint32_t kCount = 200;
  Words a(*device, kCount);
  CHECK(stream->split().ok());  // outside of a capture it does nothing
  OwnedGraph owned{*device, {}};
  REQUIRE(stream->begin_capture().ok());
  REQUIRE(stream->split().ok());  // nothing was recorded before it
  for (uint32_t part = 0; part < 4; ++part) {
    REQUIRE(stream->barrier().ok());
    REQUIRE(kernels.add_words(*stream, a.all(), a.all(), a.all()).ok());  // doubles
    REQUIRE(stream->split().ok());
  }
  REQUIRE(stream->split().ok());
  REQUIRE(stream->end_capture(&owned.graph).ok());
  REQUIRE(stream->fill(a.all(), 3).ok());
  REQUIRE(stream->replay(owned.graph).ok());
  REQUIRE(stream->replay(owned.graph).ok());
  REQUIRE(stream->barrier().ok());
  REQUIRE(kernels.add_words(*stream, a.all(), a.all(), a.all()).ok());
  REQUIRE(stream->wait().ok());
  if (which.computes) CHECK(read_words(*device, a.all())[kCount - 1] == 3u << 9);
}

TEST_CASE("two plans of one stream, and the plan of another", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto first = new_stream(*device), second = new_stream(*device);
  Words a(*device, 64), b(*device, 64);
  OwnedGraph one{*device, {}}, two{*device, {}};
  for (OwnedGraph* owned : {&one, &two}) {
    REQUIRE(first->begin_capture().ok());
    REQUIRE(first->barrier().ok());
    REQUIRE(first->fill(owned == &one ? a.all() : b.all(), owned == &one ? 10 : 20).ok());
    REQUIRE(first->end_capture(&owned->graph).ok());
  }
  REQUIRE(first->replay(two.graph).ok());
  REQUIRE(first->replay(one.graph).ok());
  REQUIRE(first->wait().ok());
  REQUIRE(second->replay(one.graph).ok());
  REQUIRE(second->wait().ok());
  if (!which.computes) return;
  CHECK(read_words(*device, a.all())[0] == 10);
  CHECK(read_words(*device, b.all())[63] == 20);
}

TEST_CASE("what does not belong into a capture is refused, and the capture goes on", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const auto stream = new_stream(*device);
  Words a(*device, 64);
  OwnedEvent event(*device);
  OwnedGraph owned{*device, {}};
  CHECK(stream->end_capture(&owned.graph).code == Code::Argument);
  CHECK(stream->replay(owned.graph).code == Code::Argument);
  REQUIRE(stream->begin_capture().ok());
  CHECK(stream->begin_capture().code == Code::Argument);
  CHECK(stream->submit().code == Code::Argument);
  CHECK(stream->wait().code == Code::Argument);
  CHECK_THAT(error_text(), ContainsSubstring("capture"));
  CHECK(stream->signal(event.event).code == Code::Argument);
  CHECK(stream->wait_for(event.event).code == Code::Argument);
  CHECK(stream->replay(owned.graph).code == Code::Argument);
  REQUIRE(stream->barrier().ok());
  REQUIRE(stream->fill(a.all(), 3).ok());
  REQUIRE(stream->end_capture(&owned.graph).ok());
  REQUIRE(stream->replay(owned.graph).ok());
  REQUIRE(stream->wait().ok());
  if (which.computes) CHECK(read_words(*device, a.all())[1] == 3);
  device->destroy(owned.graph);
  CHECK(!owned.graph.handle);
  CHECK(stream->replay(owned.graph).code == Code::Argument);
}

TEST_CASE("what was recorded is abandoned, a capture too, and the stream goes on", "[runtime]") {
  FOR_EACH_DEVICE(which);
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  constexpr uint32_t kCount = 300;
  Words a(*device, kCount), b(*device, kCount);
  REQUIRE(stream->fill(a.all(), 1).ok());
  REQUIRE(stream->fill(b.all(), 0).ok());
  REQUIRE(stream->wait().ok());
  const auto add = [&] { return kernels.add_words(*stream, a.all(), b.all(), b.all()); };  // b += 1
  OwnedEvent event(*device, false);
  for (uint32_t round = 0; round < 3; ++round) {
    REQUIRE(stream->begin_capture().ok());
    REQUIRE(stream->barrier().ok());
    REQUIRE(add().ok());
    stream->abandon();
    if (!which.checked) {  // the checked device runs each command at once
      REQUIRE(add().ok());
      REQUIRE(stream->signal(event.event).ok());
      REQUIRE(stream->barrier().ok());
      REQUIRE(add().ok());
      stream->abandon();
    }
    stream->abandon();
    REQUIRE(stream->wait().ok());
    if (which.computes) CHECK(read_words(*device, b.all()) == std::vector<uint32_t>(kCount, 2 * round));

    OwnedGraph owned{*device, {}};  // the next capture is complete
    REQUIRE(stream->begin_capture().ok());
    REQUIRE(stream->barrier().ok());
    REQUIRE(add().ok());
    REQUIRE(stream->end_capture(&owned.graph).ok());
    REQUIRE(stream->replay(owned.graph).ok());
    REQUIRE(stream->replay(owned.graph).ok());
    REQUIRE(stream->signal(event.event).ok());
    REQUIRE(stream->wait(event.event).ok());
    if (which.computes) CHECK(read_words(*device, b.all()) == std::vector<uint32_t>(kCount, 2 * round + 2));
  }
}
