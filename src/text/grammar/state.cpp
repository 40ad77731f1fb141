#include "text/grammar/state.h"

#include <algorithm>
#include <utility>

namespace greta {

void GrammarState::set(std::shared_ptr<const Grammar> grammar) {
  std::optional<GrammarMatcher> matcher;
  if (grammar) matcher.emplace(grammar);
  matcher_ = std::move(matcher);
  grammar_ = std::move(grammar);
  begin(nullptr);
}

void GrammarState::begin(std::shared_ptr<const Grammar> whole) {
  next_ = std::move(whole);
  drawn_.clear();
  stale_ = true;
}

Status GrammarState::prepare(const Tokenizer& tokenizer, const VocabTrie& trie, uint32_t vocab,
                             std::span<const int32_t> tokens, bool may_end,
                             std::span<const uint64_t>* allowed) {
  const bool goes_on = !drawn_.empty() && begin_ + int64_t(drawn_.size()) == int64_t(tokens.size()) &&
                       tokens.back() == drawn_.back();
  const bool begin = !goes_on || stale_;
  stale_ = true;  // until all of it went well
  if (begin) {
    if (!goes_on) {
      const std::shared_ptr<const Grammar> grammar = next_ ? std::exchange(next_, nullptr) : grammar_;
      if (matcher_->grammar() != grammar) matcher_.emplace(grammar);
      drawn_.clear();
      begin_ = int64_t(tokens.size());
    }
    GRETA_TRY(matcher_->reset());
    for (const int32_t token : drawn_) GRETA_TRY(matcher_->push_token(token, tokenizer.piece(token)));
  }
  allowed_.resize((vocab + 63) / 64);
  GRETA_TRY(matcher_->mask(trie, allowed_));
  stale_ = false;
  if (may_end && matcher_->may_end())
    for (const int32_t end : tokenizer.ends())
      if (uint32_t(end) < vocab) allowed_[uint32_t(end) / 64] |= uint64_t(1) << (uint32_t(end) % 64);
  const bool any = std::any_of(allowed_.begin(), allowed_.end(), [](uint64_t bits) { return bits != 0; });
  if (!any && !matcher_->may_end())
    return fail(Code::Unsupported, "the grammar wants more, but no token of the vocabulary can come next");
  *allowed = any ? std::span<const uint64_t>(allowed_) : std::span<const uint64_t>();
  return {};
}

Status GrammarState::drawn(const Tokenizer& tokenizer, int32_t token) {
  if (tokenizer.is_end(token) && matcher_->may_end()) return {};
  if (drawn_.size() == drawn_.capacity()) drawn_.reserve(2 * drawn_.size() + 16);
  stale_ = true;  // until all of it went well
  GRETA_TRY(matcher_->push_token(token, tokenizer.piece(token)));
  stale_ = false;
  drawn_.push_back(token);
  return {};
}

void GrammarState::truncate(uint32_t position) {
  const int64_t most = std::max<int64_t>(0, int64_t(position) - begin_ + 1);
  const size_t kept = std::min(drawn_.size(), size_t(most));
  stale_ = stale_ || kept < drawn_.size();
  drawn_.resize(kept);
}

}  // namespace greta
