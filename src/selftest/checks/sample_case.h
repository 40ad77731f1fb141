// Rows of logits with histories, for checks of sample.
#pragma once
#include <cstring>

#include "selftest/checks/rows.h"

namespace greta::selftest {

inline SampleParams device_params(const reference::Sampling& p) {
  SampleParams out = {};
  out.temperature = float(p.temperature);
  out.top_p = float(p.top_p);
  out.min_p = float(p.min_p);
  out.repeat_penalty = float(p.repeat_penalty);
  out.top_k = p.top_k;
  out.repeat_last_n = p.repeat_last_n;
  out.seed_low = uint32_t(p.seed);
  out.seed_high = uint32_t(p.seed >> 32);
  return out;
}

// `rows` rows of logits, and the memory that drawing from them takes.
inline Call sample_call(Rig& rig, const std::vector<float>& logits, StepRows& steps, uint32_t rows,
                        uint32_t vocab, const Slice& log = {}) {
  const Slice x = rig.put(logits), step = steps.put(rig);
  const Slice drawn = rig.room(kMaxStepSequences * kDrawnPositions * sizeof(uint32_t));
  const Slice scratch = rig.room(rows * sample_scratch_bytes(uint64_t(vocab)));
  return CallMaker{step, rig.put(std::vector<uint32_t>(kCounterCount))}.sample(x, drawn, vocab,
                                                                               {log, scratch});
}

// A row of logits for each sequence, which is at positions[i] and has a history of its own.
struct SampleCase {
  Rig& rig;
  uint32_t vocab;
  StepRows steps;
  std::vector<Ids> history;
  Call call;

  SampleCase(Rig& rig, const std::vector<float>& logits, uint32_t vocab, const reference::Sampling& params,
             const Ids& positions, Random& random)
      : rig(rig), vocab(vocab), history(positions.size()) {
    Ids log(size_t(steps.pool_pages()) * kPageTokens, ~0u);
    for (uint32_t s = 0; s < positions.size(); ++s) {
      for (uint32_t p = 0; p <= positions[s]; ++p) {
        history[s].push_back(uint32_t(random() % vocab));
        log[steps.page(s, p) * kPageTokens + p % kPageTokens] = history[s].back();
      }
      steps.add(history[s].back(), s, positions[s], true);
      steps.params[s] = device_params(params);
      steps.penalties[s] = {float(params.frequency), float(params.presence)};
    }
    call = sample_call(rig, logits, steps, uint32_t(positions.size()), vocab, rig.put(log));
  }

  // Fails unless the host gets the same tokens and the rows of the next step follow them. Returns the tokens
  // of all sequences, ~0 where none was drawn.
  Ids run(const KernelRow& row, uint32_t bucket) {
    call.slot[kStep] = steps.put(rig);
    rig.poison(call.slot[kY]);
    const Ids before = rig.get<uint32_t>(call.slot[kY]);
    rig.run({&call, 1}, row, bucket);
    const auto bytes = rig.get<uint8_t>(call.slot[kStep]);
    StepState state;
    memcpy(&state, bytes.data(), sizeof state);
    Ids drawn = before;
    for (uint32_t t = 0; t < steps.rows.size(); ++t) {
      const StepRow& was = steps.rows[t];
      if (was.output < steps.first_drawn) {
        expect(!memcmp(&state.row[t], &was, sizeof was),
               std::string(row.name) + ": changed a row from which nothing is drawn");
        continue;
      }
      drawn[was.sequence * kDrawnPositions + was.position % kDrawnPositions] = state.last_token[was.sequence];
      expect(state.row[t].token == kTokenFromSample && state.row[t].position == was.position + 1 &&
                 state.row[t].sequence == was.sequence && state.row[t].output == was.output,
             std::string(row.name) + ": the next step's row does not follow from the drawn token");
    }
    expect(rig.get<uint32_t>(call.slot[kY]) == drawn, std::string(row.name) + ": the host got other tokens");
    return Ids(state.last_token, state.last_token + kMaxStepSequences);
  }
};

}  // namespace greta::selftest
