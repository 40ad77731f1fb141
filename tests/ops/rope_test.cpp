#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>

#include "selftest/checks/checks.h"
#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("rope: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_rope(rig);
}

TEST_CASE("rope: turns a part of each head into a part of wider heads", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_rope_strides(rig);
}

TEST_CASE("rope: with a norm before and the cache after", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_rope_sequences(rig);
}

}  // namespace greta::test
