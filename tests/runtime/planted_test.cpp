// Planted faults that must be found. The hidden ones are run by name, under the validation layers, by
// `.ci/run validation`.
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/device_kernels.h"

using namespace greta;

// The value that it reads is not used, so nothing is noticed without validation.
TEST_CASE("planted: a launch reads past the end of a buffer", "[.planted]") {
  const OpenDevice device = open_named("vulkan0", 0);
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  const Words a(*device, 64), b(*device, 128), y(*device, 128);
  REQUIRE(stream->fill(a.all(), 1).ok());
  REQUIRE(stream->fill(b.all(), 2).ok());
  REQUIRE(stream->barrier().ok());
  REQUIRE(kernels.add_words(*stream, a.all(), b.all(), y.all()).ok());
  REQUIRE(stream->wait().ok());
}

TEST_CASE("planted: a copy does not wait for the fill before it", "[.planted]") {
  const OpenDevice device = open_named("vulkan0", 0);
  const auto stream = new_stream(*device);
  const Words a(*device, 128), b(*device, 128);
  REQUIRE(stream->fill(a.all(), 1).ok());
  REQUIRE(stream->copy(b.all(), a.all()).ok());
  REQUIRE(stream->wait().ok());
}

TEST_CASE("planted: a launch does not wait for the launch before it, whatever the device inside",
          "[runtime]") {
  FOR_EACH_DEVICE(which);
  if (!which.checked) return;
  const OpenDevice device = which.open();
  const TestKernels kernels(*device);
  const auto stream = new_stream(*device);
  const Words a(*device, 128), b(*device, 128);
  REQUIRE(kernels.write_index(*stream, a.all(), 1).ok());
  CHECK(kernels.add_words(*stream, a.all(), a.all(), b.all()).code == Code::Device);
  CHECK_THAT(error_text(), Catch::Matchers::ContainsSubstring("missing barrier"));
  REQUIRE(stream->barrier().ok());
  CHECK(kernels.add_words(*stream, a.all(), a.all(), b.all()).ok());
  REQUIRE(stream->wait().ok());
}
