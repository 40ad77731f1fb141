#include "engine/write/model_draft.h"

#include <algorithm>
#include <utility>

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

bool ModelDraft::can_guess(const ModelAsk& ask) const {
  const uint32_t vocab = executor_->model().shape.vocab;
  return ask.text.size() + ask.most <= executor_->plan().context &&
         std::ranges::all_of(ask.text, [&](int32_t token) { return uint32_t(token) < vocab; });
}

// Goes back to where the text differs from what was read. Its last token is read again for what follows it.
Status ModelDraft::begin(const ModelAsk& ask) {
  made_.clear();
  GRETA_TRY(take_sequence());
  const auto differs = std::mismatch(read_.begin(), read_.end(), ask.text.begin(), ask.text.end()).first;
  const size_t same = std::min(size_t(differs - read_.begin()), ask.text.size() - 1);
  if (same < read_.size()) read_.resize(executor_->truncate(sequence_, uint32_t(same)));
  return {};
}

// Adds rows of the text that were not read, and a draw behind the last one. Gives their number.
uint32_t ModelDraft::add_unread(const ModelAsk& ask, uint32_t most, std::vector<Executor::Row>* rows) const {
  const size_t first = read_.size(), end = std::min(ask.text.size(), first + most);
  for (size_t at = first; at < end; ++at)
    rows->push_back({uint32_t(ask.text[at]), uint32_t(at), sequence_,
                     at + 1 == ask.text.size() ? Executor::Output::Draw : Executor::Output::None});
  return uint32_t(end - first);
}

// Reads all of the texts, and draws the token that follows each.
Status ModelDraft::read_all(std::span<const ModelAsk> asks) {
  Executor& executor = *asks[0].draft->executor_;
  std::vector<Executor::Row> rows;
  std::vector<uint32_t> counts(asks.size());
  for (;;) {
    rows.clear();
    for (size_t i = 0; i < asks.size(); ++i)
      counts[i] =
          asks[i].draft->add_unread(asks[i], executor.plan().step_tokens - uint32_t(rows.size()), &rows);
    if (rows.empty()) return {};
    GRETA_TRY(executor.step(rows));
    for (size_t i = 0; i < asks.size(); ++i) {
      std::vector<int32_t>& read = asks[i].draft->read_;
      const auto first = asks[i].text.begin() + std::ptrdiff_t(read.size());
      read.insert(read.end(), first, first + counts[i]);
    }
  }
}

Status ModelDraft::guess_all(std::span<const ModelAsk> asks) {
  GRETA_TRY(read_all(asks));
  Executor& executor = *asks[0].draft->executor_;
  const uint32_t vocab = executor.model().shape.vocab;
  std::vector<const ModelAsk*> left;
  for (const ModelAsk& ask : asks) left.push_back(&ask);
  for (std::vector<Executor::Row> rows;; rows.clear()) {
    std::erase_if(left, [&](const ModelAsk* ask) {
      ModelDraft& d = *ask->draft;
      const uint32_t token = executor.drawn(d.sequence_, uint32_t(d.read_.size()) - 1);
      if (token >= vocab) return true;  // no logit is finite
      d.made_.push_back(int32_t(token));
      if (d.made_.size() >= ask->most) return true;
      rows.push_back({token, uint32_t(d.read_.size()), d.sequence_, Executor::Output::Draw});
      return false;
    });
    if (left.empty()) break;
    GRETA_TRY(executor.step(rows));
    for (const ModelAsk* ask : left) ask->draft->read_.push_back(ask->draft->made_.back());
  }
  for (const ModelAsk& ask : asks) ask.draft->made_for_ = ask.text.size();
  return {};
}

void ModelDraft::guess_together(std::span<const ModelAsk> asks) {
  std::vector<ModelAsk> all;
  for (const ModelAsk& ask : asks)
    if (ask.draft->executor_ == asks[0].draft->executor_ && ask.draft->can_guess(ask) &&
        ask.draft->begin(ask).ok())
      all.push_back(ask);
  if (all.size() > 1) (void)guess_all(all);
}

Status ModelDraft::guess(std::span<const int32_t> text, uint32_t most, std::vector<int32_t>* out) {
  out->clear();
  const ModelAsk ask{this, text, most};
  if (std::exchange(made_for_, 0) != text.size()) {
    if (!can_guess(ask)) return {};
    GRETA_TRY(begin(ask));
    GRETA_TRY(guess_all({&ask, 1}));
    made_for_ = 0;
  }
  out->assign(made_.begin(), made_.begin() + std::ptrdiff_t(std::min<size_t>(most, made_.size())));
  return {};
}

}  // namespace greta
