// A text in a sequence of an executor: its tokens, and what chooses the next one.
#pragma once
#include "engine/executor/executor.h"
#include "engine/sampling/sampler.h"
#include "text/text.h"

namespace greta {

struct Text {
  uint32_t sequence = ~0u;      // none yet
  uint32_t fed = 0;             // tokens whose steps have ended
  std::vector<int32_t> tokens;  // those that were fed, and those that are known beyond them
  Sampler sampler;
  GrammarState grammar;

  void feed(std::span<const int32_t> more) {  // after the executor has taken them
    tokens.insert(tokens.end(), more.begin(), more.end());
    fed += uint32_t(more.size());
  }
  void take_back(uint32_t position) {
    fed = position;
    tokens.resize(position);
    sampler.truncate(position);
    grammar.truncate(position);
  }
  // Chooses on the host the token that follows the last one, from its logits [vocab]. It gives kNoToken if
  // the grammar is at its end, and the vocabulary has no token that ends an answer or `may_end` forbids it.
  Status choose(const Model& model, const float* logits, bool may_end, int32_t* token);
};

// For samplers with on_device().
DeviceSampling device_sampling(const SamplerSettings& settings);

// The numbers of a failure that says that something is too long or too many, for programs that word it
// themselves.
struct TooLong {
  uint64_t length = 0, limit = 0;
};
// Keeps the numbers of a failure, which this gives back, for the thread's next take_numbers().
Status with_numbers(Status failure, const TooLong& numbers);
TooLong take_numbers();  // 0 and 0 where no failure has had any since the last time

// Fails unless the tokens are of the vocabulary and fit into the context after `position`.
Status check_tokens(std::span<const int32_t> tokens, uint32_t position, uint32_t context, uint32_t vocab);

// What may stand in place of the tokens of a full context: the first `keep` of them and the last half of the
// others; nothing where none can leave.
Status forget_half(std::span<const int32_t> held, uint32_t keep, std::vector<int32_t>* instead);

// Gives the tokens that shall stand in place of those of a full context, or none if the text shall end.
using OnFull = std::function<Status(std::span<const int32_t> held, std::vector<int32_t>* instead)>;
OnFull forgets_half(uint32_t keep);  // what forget_half() gives

}  // namespace greta
