// Checks sample against float64.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "selftest/checks/checks.h"
#include "selftest/checks/sample_case.h"

namespace greta::selftest {

namespace {

// Checks rows in which some values are not finite. The result is kNoDraw if none is finite, else the largest.
void check_no_numbers(Rig& rig, Random& random) {
  const float inf = INFINITY;
  const reference::Sampling all[] = {
      {0, 0, 0, 0, 0, 0, 0}, {1, 0.9, 0.1, 1.2, 5, 64, 1}, {1, 0, 0, 0, 0, 0, 1}};
  struct Special {
    float rest, largest;  // all values but one, and that one
  };
  for (const reference::Sampling& params : all)
    for (const uint32_t vocab : {5000u, 3u})
      for (const Special each : {Special{NAN, NAN},
                                 {-inf, -inf},
                                 {inf, inf},
                                 {NAN, inf},
                                 {-inf, NAN},
                                 {NAN, 2},
                                 {-inf, -2},
                                 {0.5f, inf}}) {
        std::vector<float> logits(vocab, each.rest);
        const uint32_t place = uint32_t(random() % vocab);
        logits[place] = each.largest;
        const bool finite = std::isfinite(each.rest) || std::isfinite(each.largest);
        const uint32_t expected = finite ? place : kNoDraw;
        SampleCase c(rig, logits, vocab, params, {70}, random);
        for (const KernelRow* row : rig.rows({&c.call, 1}, 1)) {
          const uint32_t id = c.run(*row, 1)[0];
          expect(id == expected, std::string(row->name) + ": token " + std::to_string(int32_t(id)) +
                                     " instead of " + std::to_string(int32_t(expected)) +
                                     " from logits that are no numbers");
        }
        rig.reset();
      }
}

// Checks rows of one sequence: each draws for the host, and the last one decides how the sequence goes on.
void check_one_sequence(Rig& rig) {
  StepRows steps;
  const uint32_t sequence = 5 % steps.sequences, vocab = 3;
  for (uint32_t t = 0; t < 3; ++t) steps.add(0, sequence, t, true);
  steps.params[sequence] = {};
  Call call = sample_call(rig, {9, 0, 0, 0, 9, 0, 0, 0, 9}, steps, 3, vocab);
  for (const KernelRow* row : rig.rows({&call, 1}, 8)) {
    call.slot[kStep] = steps.put(rig);
    rig.run({&call, 1}, *row, 8);
    StepState state;
    memcpy(&state, rig.get<uint8_t>(call.slot[kStep]).data(), sizeof state);
    const Ids drawn = rig.get<uint32_t>(call.slot[kY]);
    for (uint32_t t = 0; t < 3; ++t) {
      expect(drawn[sequence * kDrawnPositions + t] == t,
             std::string(row->name) + ": the host got another token of several");
      expect(state.row[t].position == (t < 2 ? t : t + 1),
             std::string(row->name) + ": moved another row than the last of a sequence");
    }
    expect(state.last_token[sequence] == 2, std::string(row->name) + ": the last draw does not decide");
  }
  rig.reset();
}

}  // namespace

void check_sample(Rig& rig) {
  Random random(1);
  const reference::Sampling all[] = {
      {0.8, 0.95, 0.02, 1.3, 40, 64, 5, 0.25, 0.5},  // first, for a quick rig: everything is on
      {0, 0, 0, 0, 0, 0, 0},
      {1, 0, 0, 0, 0, 0, 1},
      {0.7, 0, 0, 0, 40, 0, 2},
      {1.3, 0.9, 0, 0, 0, 0, 3},
      {1, 0, 0.05, 0, 0, 0, 4},
      {0, 0, 0, 1.5, 0, 256, 6},
      {1, 0.5, 0, 1.1, 3, 1000, 7},
      {0, 0, 0, 0, 0, 256, 11, 0.75, 0},
      {0.9, 0, 0, 0, 0, 64, 12, 0, 2},
      {1, 0.9, 0, 1, 20, 300, 13, -0.5, -0.25},
      {1, 1, 0, 1, 1, 8, 0x123456789abcdef0},
      {2, 0.999, 0.5, 0, 100000, 0, 9},
      {0.01, 0, 0, 0, 2, 0, 10},
  };
  uint32_t draws = 0, near = 0;
  for (const reference::Sampling& params : all)
    for (const uint32_t vocab : {5000u, 1u, 3u, 67u, 512u})
      for (uint32_t repeat = 0; repeat < 4; ++repeat) {
        const Ids positions = {uint32_t(random() % 300), 0, uint32_t(random() % 60)};
        const auto logits = gaussians(positions.size() * vocab, random, 3);
        SampleCase c(rig, logits, vocab, params, positions, random);
        const uint32_t first = c.steps.first_drawn = repeat % 2;
        for (const KernelRow* row : rig.rows({&c.call, 1}, 8)) {
          const Ids chosen = c.run(*row, 8);
          for (uint32_t s = first; s < positions.size(); ++s, ++draws) {
            const auto* from = &logits[size_t(s) * vocab];
            const auto expected = reference::sample({from, from + vocab}, c.history[s], positions[s], params);
            if (expected.margin > 1e-6)
              expect(chosen[s] == expected.id, std::string(row->name) + ": token " +
                                                   std::to_string(chosen[s]) + " instead of " +
                                                   std::to_string(expected.id));
            else
              ++near;
          }
          for (size_t s = 0; s < kMaxStepSequences; ++s)
            expect((s >= first && s < positions.size()) || chosen[s] == ~0u,
                   std::string(row->name) + ": drew for a sequence without a row to draw from");
        }
        rig.reset();
      }
  check_no_numbers(rig, random);
  check_one_sequence(rig);
  expect(near * 50 < draws, "sample: too many draws are too near to say");
  rig.require_all_run(Op::Sample);
}

}  // namespace greta::selftest
