// Which roof bounds a stage, with made-up ones: 100 bytes and 1000 operations a second.
#include "../../tools/cli/bench/roofline.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace greta::cli;

namespace {
constexpr uint64_t kSecond = 1'000'000'000;
constexpr Roofs kRoofs = {100, 1000};
}  // namespace

TEST_CASE("roofline: what takes longer at its roof bounds", "[cli]") {
  const Bound reads = bound_of(kRoofs, 50, 499, kSecond);  // 0.5 s and 0.499 s
  CHECK_FALSE(reads.arithmetic);
  CHECK(reads.percent == Catch::Approx(50));
  const Bound multiplies = bound_of(kRoofs, 50, 800, 2 * kSecond);
  CHECK(multiplies.arithmetic);
  CHECK(multiplies.percent == Catch::Approx(40));
}

TEST_CASE("roofline: neither work nor time nor a roof need be there", "[cli]") {
  CHECK(bound_of(kRoofs, 0, 0, kSecond).percent == 0);
  CHECK_FALSE(bound_of(kRoofs, 0, 0, kSecond).arithmetic);
  CHECK(bound_of(kRoofs, 1, 0, 0).percent > 0);
  const Bound bytes_alone = bound_of({100, 0}, 25, 5000, kSecond);
  CHECK_FALSE(bytes_alone.arithmetic);
  CHECK(bytes_alone.percent == Catch::Approx(25));
}
