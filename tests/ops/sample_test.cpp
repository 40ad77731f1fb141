// sample: every row against the float64 sampler, the generator against its published vectors, and the
// distribution of many draws.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>

#include "kernels/cpu/sample/philox.h"
#include "selftest/checks/checks.h"
#include "selftest/checks/sample_case.h"
#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;
TEST_CASE("sample: Philox gives the published vectors", "[ops]") {
  // Random123, kat_vectors: philox4x32 10
  const Philox zero = philox4x32({{0, 0, 0, 0}}, 0, 0);
  const uint32_t expected_zero[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  const Philox ones = philox4x32({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u);
  const uint32_t expected_ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  const Philox pi = philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0);
  const uint32_t expected_pi[] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  for (int i = 0; i < 4; ++i) {
    REQUIRE(zero.word[i] == expected_zero[i]);
    REQUIRE(ones.word[i] == expected_ones[i]);
    REQUIRE(pi.word[i] == expected_pi[i]);
  }
}

TEST_CASE("sample: every row draws what float64 draws", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_sample(rig);
}

TEST_CASE("sample: equal logits give the lowest id, NaN and infinity no id that is not there", "[ops]") {
  OpRig rig;
  Random random(2);
  const reference::Sampling greedy{0, 0, 0, 0, 0, 0, 0}, filtered{1, 0.9, 0.1, 1.2, 5, 64, 1},
      free{1, 0, 0, 0, 0, 0, 1};
  const float inf = INFINITY;
  const std::vector<float> rows[] = {{1, 3, 3, 3, 2, 0},
                                     {NAN, NAN, NAN, NAN, NAN, NAN},
                                     {-inf, -inf, -inf, -inf, -inf, -inf},
                                     {NAN, 1, inf, inf, -inf, 0},
                                     {-inf, -inf, -inf, -inf, 2, -inf}};
  for (const auto& logits : rows)
    for (const auto& params : {greedy, filtered, free}) {
      SampleCase c(rig, logits, 6, params, {70}, random);
      for (const KernelRow* row : rig.rows({&c.call, 1}, 1)) {
        const uint32_t id = c.run(*row, 1)[0];
        const bool none = &logits == &rows[1] || &logits == &rows[2];  // without a finite value
        REQUIRE((none ? id == kNoDraw : id < 6));
        if (&logits == &rows[0] && params.temperature == 0) REQUIRE(id == 1);
        if (&logits == &rows[3] && params.temperature == 0) REQUIRE(id == 2);
        if (&logits == &rows[4] && params.repeat_penalty == 0)
          REQUIRE(id == 4);  // masked tokens are never drawn
      }
    }
}

TEST_CASE("sample: many draws follow the distribution", "[ops]") {
  OpRig rig;
  const std::vector<float> logits = {0, 1, 2, -1, 0.5f, 1.5f, -2, 0.25f};
  const uint32_t vocab = 8, together = kMaxStepSequences, launches = 100;
  double total = 0, chi_square = 0;
  for (const float logit : logits) total += std::exp(logit);
  std::vector<float> all;
  for (uint32_t s = 0; s < together; ++s) all.insert(all.end(), logits.begin(), logits.end());
  std::vector<uint32_t> counts(vocab);
  for (uint32_t launch = 0; launch < launches; ++launch) {
    StepRows steps(together, 8);
    for (uint32_t s = 0; s < together; ++s) {
      steps.add(0, s, launch, true);
      steps.params[s].temperature = 1;
      steps.params[s].seed_low = s;
    }
    const Call call = sample_call(rig, all, steps, together, vocab);
    rig.run_plain(call, together);
    StepState state;
    memcpy(&state, rig.get<uint8_t>(call.slot[kStep]).data(), sizeof state);
    for (uint32_t s = 0; s < together; ++s) ++counts.at(state.last_token[s]);
    rig.reset();
  }
  for (uint32_t i = 0; i < vocab; ++i) {
    const double expected = together * launches * std::exp(logits[i]) / total;
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  REQUIRE(chi_square < 24.3);  // 7 degrees of freedom, one in a thousand
}

}  // namespace greta::test
