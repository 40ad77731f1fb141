// Faults that are there to be found: run by name, under the validation layers, by `.ci/run validation`.
#include "support/device_kernels.h"

using namespace greta;

// What it read is not used: without validation nothing is to be seen.
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
