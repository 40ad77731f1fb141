// One vector for a text, as embedding models give it: the hidden states of its tokens, pooled.
//
// The hidden state of a token is what the model's last norm gives, from which logits would be made.
#pragma once
#include "engine/model/model.h"

namespace greta {

// Numbers of the key `*.pooling_type`, and None, which no file names, for vectors that are not pooled.
enum class Pooling : uint32_t { Mean = 1, First = 2, Last = 3, None = 4 };

struct EmbedOptions {
  Pooling pooling = Pooling::Mean;
  bool raw = false;  // the vector keeps its length, else that becomes 1
};

// The pooling that the file names; the mean where it names none.
Status model_pooling(const Model& model, Pooling* out);

// Takes hidden states in the order of their positions. So the vector does not depend on how a text was cut
// into steps.
class PooledText {
 public:
  // A text of `count` tokens that begins at position `begin`.
  PooledText(const EmbedOptions& options, uint32_t width, uint32_t begin, uint32_t count);

  bool wants(uint32_t position) const { return first_ <= position && position < last_; }
  uint32_t wanted(uint32_t begin, uint32_t count) const;  // how many of these positions
  // state: [width]. A position that was added before, or is not wanted, is left out.
  void add(uint32_t position, const float* state);
  bool complete() const { return next_ == last_; }
  // [width], without pooling [count][width]. Fails where a vector has a number that is not finite.
  Status finish(std::vector<float>* out) const;

 private:
  const bool raw_, apart_;       // apart: each token keeps its vector
  const uint32_t first_, last_;  // positions [first_, last_) are pooled
  uint32_t next_;                // the first one of them that was not added yet
  std::vector<double> sum_;
  std::vector<float> states_;  // those added, where they stay apart
};

}  // namespace greta
