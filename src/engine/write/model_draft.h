// Guesses of a second model with the same vocabulary.
#pragma once
#include "engine/executor/executor.h"
#include "engine/write/draft.h"

namespace greta {

// Fails unless both models have the same tokens.
Status check_same_vocabulary(const Tokenizer& text, const Tokenizer& draft);
// Fails unless the executor of a second model can guess for texts of this model and context.
Status check_draft_model(const Model& model, uint32_t context, const Executor& draft);

class ModelDraft;
// Wants at most `most` tokens behind the text.
struct ModelAsk {
  ModelDraft* draft;
  std::span<const int32_t> text;
  uint32_t most;
};

// Reads the text in a sequence of the second model's executor, which it takes for its first guess and gives
// back when it is destroyed, and guesses the likeliest tokens. Where the text differs from what it has read,
// it goes back. One thread at a time may use the executor.
class ModelDraft final : public DraftSource {
 public:
  explicit ModelDraft(std::shared_ptr<Executor> executor) : executor_(std::move(executor)) {}
  ~ModelDraft() override;
  bool is_free() const override { return false; }
  Status guess(std::span<const int32_t> text, uint32_t most, std::vector<int32_t>* out) override;
  // Guesses for texts of one executor in steps that they share; guess() then gives what was made. What cannot
  // be guessed beside others is guessed alone by guess(), which says why.
  static void guess_together(std::span<const ModelAsk> asks);

 private:
  bool can_guess(const ModelAsk& ask) const;
  Status begin(const ModelAsk& ask);
  static Status guess_all(std::span<const ModelAsk> asks);
  static Status read_all(std::span<const ModelAsk> asks);
  uint32_t add_unread(const ModelAsk& ask, uint32_t most, std::vector<Executor::Row>* rows) const;
  Status take_sequence();

  const std::shared_ptr<Executor> executor_;
  uint32_t sequence_ = ~0u;    // none yet
  std::vector<int32_t> read_;  // tokens that the sequence holds
  std::vector<int32_t> made_;  // guesses
  size_t made_for_ = 0;        // behind so many tokens; 0: none are there
};

}  // namespace greta
