#include "engine/write/model_draft.h"

#include <algorithm>

#include "engine/write/text.h"

namespace greta {

Status check_same_vocabulary(const Tokenizer& text, const Tokenizer& draft) {
  if (text.size() != draft.size())
    return fail(Code::Unsupported,
                "the second model has %u tokens, and the first one %u: they must be the same", draft.size(),
                text.size());
  for (uint32_t id = 0; id < text.size(); ++id) {
    const std::string a = text.piece(int32_t(id), true), b = draft.piece(int32_t(id), true);
    if (a != b || text.is_end(int32_t(id)) != draft.is_end(int32_t(id)))
      return fail(Code::Unsupported,
                  "token %u is %s in the second model, and %s in the first one: they must be the "
                  "same",
                  id, Quoted(b).c_str(), Quoted(a).c_str());
  }
  return {};
}

Status check_draft_model(const Model& model, uint32_t context, const Executor& draft) {
  GRETA_TRY(check_same_vocabulary(*model.tokenizer, *draft.model().tokenizer));
  if (draft.plan().context > context)
    return fail(
        Code::Argument,
        "the second model's context of %u tokens is longer than the text's of %u, so a part would never "
        "be used: open its executor with that one",
        draft.plan().context, context);
  return {};
}

ModelDraft::~ModelDraft() {
  if (sequence_ != ~0u) executor_->release_sequence(sequence_);
}

Status ModelDraft::take_sequence() {
  if (sequence_ != ~0u) return {};
  GRETA_TRY(executor_->acquire_sequence(&sequence_));
  executor_->set_sampling(sequence_, device_sampling(SamplerSettings{}));
  return {};
}

void ModelDraft::go_back(size_t tokens) {
  if (tokens < read_.size()) read_.resize(executor_->truncate(sequence_, uint32_t(tokens)));
}

// Reads all of the text, and draws the token that follows it.
Status ModelDraft::read(std::span<const int32_t> text) {
  const auto differs = std::mismatch(read_.begin(), read_.end(), text.begin(), text.end()).first;
  go_back(std::min(size_t(differs - read_.begin()), text.size() - 1));
  while (read_.size() < text.size()) {
    const size_t count = std::min<size_t>(executor_->plan().step_tokens, text.size() - read_.size());
    std::vector<Executor::Row> rows;
    for (size_t i = 0; i < count; ++i) {
      const size_t at = read_.size() + i;
      const bool last = at + 1 == text.size();
      rows.push_back({uint32_t(text[at]), uint32_t(at), sequence_,
                      last ? Executor::Output::Draw : Executor::Output::None});
    }
    GRETA_TRY(executor_->step(rows));
    read_.insert(read_.end(), text.begin() + std::ptrdiff_t(read_.size()),
                 text.begin() + std::ptrdiff_t(read_.size() + count));
  }
  return {};
}

Status ModelDraft::draw_next(int32_t token) {
  const Executor::Row row{uint32_t(token), uint32_t(read_.size()), sequence_, Executor::Output::Draw};
  GRETA_TRY(executor_->step({&row, 1}));
  read_.push_back(token);
  return {};
}

Status ModelDraft::guess(std::span<const int32_t> text, uint32_t most, std::vector<int32_t>* out) {
  out->clear();
  const uint32_t vocab = executor_->model().shape.vocab;
  const auto unknown = [&](int32_t token) { return uint32_t(token) >= vocab; };
  if (text.size() + most > executor_->plan().context || std::ranges::any_of(text, unknown)) return {};
  GRETA_TRY(take_sequence());
  GRETA_TRY(read(text));
  for (;;) {
    const uint32_t token = executor_->drawn(sequence_, uint32_t(read_.size()) - 1);
    if (token >= vocab) return {};  // no logit is finite
    out->push_back(int32_t(token));
    if (out->size() == most) return {};
    GRETA_TRY(draw_next(int32_t(token)));
  }
}

}  // namespace greta
