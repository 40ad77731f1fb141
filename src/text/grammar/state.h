// The grammar of a session: which of its tokens were drawn under it, and what may come next.
#pragma once
#include <optional>

#include "text/grammar/grammar.h"

namespace greta {

class GrammarState {
 public:
  // Null: none. The text begins anew.
  void set(std::shared_ptr<const Grammar> grammar);
  bool active() const { return matcher_.has_value(); }

  // What may follow `tokens`, which goes on from the token drawn last if that is the last of them, else
  // begins. allowed  [ceil(vocab / 64)] bits, valid until the next call; empty() if nothing may follow at all
  Status prepare(const Tokenizer& tokenizer, const VocabTrie& trie, uint32_t vocab,
                 std::span<const int32_t> tokens, bool may_end, std::span<const uint64_t>* allowed);
  Status drawn(const Tokenizer& tokenizer, int32_t token);
  void truncate(uint32_t position);  // to so many tokens

 private:
  std::optional<GrammarMatcher> matcher_;
  uint32_t begin_ = 0;          // position of the first token drawn
  std::vector<int32_t> drawn_;  // the last may not have been fed yet
  bool stale_ = false;          // the matcher is further than `drawn_`
  std::vector<uint64_t> allowed_;
};

}  // namespace greta
