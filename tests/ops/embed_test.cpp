// embed: rows of the table for every type, bit for bit, and what it writes into the token log.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include "support/row_ops.h"

namespace greta::test {

using Catch::Generators::from_range;

TEST_CASE("embed: every row gives the decoded values exactly", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(1);
  for (const Stored& stored : stored_types(rig, Op::Embed))
    for (const Live& live : live_rows(rig)) {
      const uint32_t vocab = 37, width = quant_info(stored.type).block == 1 ? 51 : 512;
      const Matrix matrix = random_matrix(stored.type, vocab, width, 1, Scales::Extreme, random);
      StepRows steps;
      Ids tokens;
      for (uint32_t t = 0; t < live.tokens; ++t) {
        tokens.push_back(uint32_t(random() % vocab));
        steps.add(tokens.back(), t % 2, 70 + t / 2);  // two sequences
      }
      const Slice log = rig.room(uint64_t(steps.pool_pages()) * kPageTokens * 4);
      Call call = row_call(Op::Embed, {}, rig.room(uint64_t(live.bucket) * width * 4), steps.put(rig));
      call.weight = put_matrix(rig, matrix, stored.layout);
      call.slot[kLog] = log;
      const Values expected = reference::embed(matrix.values, width, tokens, 1);
      check_rows(rig, call, live.bucket, expected, 0);
      const Ids logged = rig.get<uint32_t>(log);
      size_t written = 0;
      for (const uint32_t entry : logged) written += entry != ~0u;
      REQUIRE(written == live.tokens);
      for (size_t t = 0; t < tokens.size(); ++t) {
        const StepRow& row = steps.rows[t];
        REQUIRE(logged[steps.page(row.sequence, row.position) * kPageTokens + row.position % kPageTokens] ==
                tokens[t]);
      }
      rig.reset();
    }
  rig.require_all_run(Op::Embed);
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
  Call call = row_call(Op::Embed, {}, rig.room(4 * width * 4), steps.put(rig));
  call.weight = put_matrix(rig, matrix, Layout::Gguf);
  call.slot[kLog] = rig.room(uint64_t(steps.pool_pages()) * kPageTokens * 4);
  call.scale = 2.5f;
  check_rows(rig, call, 4, reference::embed(matrix.values, width, {0, 3, 0}, 2.5), 1e-14);
}

}  // namespace greta::test
