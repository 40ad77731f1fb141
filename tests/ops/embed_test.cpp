// embed: rows of the table for every type, bit for bit, and what it writes into the token log.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "selftest/checks/checks.h"
#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("embed: every row gives the decoded values exactly", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_embed(rig);
}

TEST_CASE("embed: takes sampled tokens, and none from outside the table", "[ops]") {
  OpRig rig;
  Random random(2);
  const uint32_t vocab = 5, width = 32;
  const Matrix matrix = random_matrix(QuantType::f32, vocab, width, 1, Scales::Plain, random);
  StepRows steps;
  steps.add(kTokenFromSample, 1, 0);  // nothing sampled yet: an id past the table
  steps.add(kTokenFromSample, 2, 0);
  steps.add(vocab, 0, 0);
  steps.last_token[2] = 3;
  const Slice y = rig.room(4 * width * 4), step = steps.put(rig);
  const Slice log = rig.room(uint64_t(steps.pool_pages()) * kPageTokens * 4);
  const Call call = CallMaker{step}.embed(put_matrix(rig, matrix, Layout::Gguf), y, log, 2.5f);
  check_rows(rig, call, 4, reference::embed(matrix.values, width, {0, 3, 0}, 2.5), 1e-14);
}

}  // namespace greta::test
