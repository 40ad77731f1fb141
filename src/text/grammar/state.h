// The grammar of a session. It knows which tokens were drawn under it, and says what may come next.
#pragma once
#include <optional>

#include "text/grammar/grammar.h"

namespace greta {

class GrammarState {
 public:
  // Sets the grammar, or none if it is null. The text begins anew.
  void set(std::shared_ptr<const Grammar> grammar);
  bool active() const { return matcher_.has_value(); }
  const std::shared_ptr<const Grammar>& grammar() const { return grammar_; }  // the one that was set
  // The text begins anew, and is held to `whole` in place of the grammar that was set, as long as it goes on.
  void begin(std::shared_ptr<const Grammar> whole);

  // Says what may follow `tokens`. If the token drawn last is the last of them, the text goes on from there,
  // else it begins anew. allowed: [ceil(vocab / 64)] bits, valid until the next call; empty if nothing may
  // follow at all.
  Status prepare(const Tokenizer& tokenizer, const VocabTrie& trie, uint32_t vocab,
                 std::span<const int32_t> tokens, bool may_end, std::span<const uint64_t>* allowed);
  Status drawn(const Tokenizer& tokenizer, int32_t token);
  void truncate(uint32_t position);  // keeps so many tokens of the session
  // Tells that the last token of the session now stands `count` positions earlier. What was drawn stays.
  void move_back(uint32_t count) { begin_ -= count; }

 private:
  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const Grammar> next_;    // of the text that begins next; null: grammar_
  std::optional<GrammarMatcher> matcher_;  // of the text that was begun last
  int64_t begin_ = 0;                      // position of the first token drawn; negative if it was moved out
  std::vector<int32_t> drawn_;             // the last one may not have been fed yet
  bool stale_ = false;                     // the matcher may have gone beyond `drawn_`
  std::vector<uint64_t> allowed_;
};

}  // namespace greta
