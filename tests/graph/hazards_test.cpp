// Hazards: where streams without a plan need barriers.
#include "graph/hazards.h"

#include <catch2/catch_test_macros.hpp>

using namespace greta;

TEST_CASE("hazards: barriers at the beginning and between conflicts, and nowhere else", "[graph]") {
  const Buffer one, other;
  const auto access = [](const Buffer& buffer, uint64_t offset, Access::Mode mode) {
    return Access{{&buffer, offset, 16}, mode};
  };
  Hazards hazards;
  const auto note = [&](const Access& a) { return hazards.note({&a, 1}); };
  CHECK(note(access(one, 0, Access::kRead)));  // the host or another stream may have written it
  CHECK(!note(access(one, 0, Access::kRead)));
  CHECK(!note(access(one, 16, Access::kWrite)));
  CHECK(!note(access(other, 16, Access::kWrite)));
  CHECK(note(access(one, 24, Access::kRead)));
  CHECK(!note(access(one, 16, Access::kRead)));  // what was written before the barrier is there
  CHECK(note(access(one, 16, Access::kWrite)));
  CHECK(note(access(one, 16, Access::kWrite)));
  hazards.all();
  CHECK(note(access(other, 512, Access::kRead)));
  CHECK(!note(access(other, 512, Access::kRead)));
  for (int i = 0; i < 1000; ++i) (void)note(access(one, uint64_t(i) * 16, Access::kRead));
  CHECK(note(access(one, 999 * 16, Access::kWrite)));  // it forgets nothing without a barrier
}
