// A vocabulary as a trie of bytes, in the order that a walk visits it, so that one pass over a flat array
// finds all tokens that a grammar allows.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace greta {

class Tokenizer;

struct VocabTrie {
  struct Node {
    uint32_t skip;   // the next node that is not below this one
    int32_t token;   // the token that ends here, or kNoToken
    uint16_t depth;  // bytes from the start, at least 1
    uint8_t byte;
    bool more;  // tokens with the same bytes are in `twins`
  };
  struct Twin {
    int32_t first, token;
  };
  std::vector<Node> nodes;
  std::vector<Twin> twins;   // ascending
  std::vector<int32_t> all;  // every token that does not end an answer, control tokens among them
  uint32_t longest = 0;      // bytes

  // Takes the tokens that stand for bytes of text. Control tokens and those that end an answer do not.
  void build(const Tokenizer& tokenizer);

  template <class Call>
  void each_twin(int32_t token, Call call) const {
    const auto before = [](const Twin& twin, int32_t first) { return twin.first < first; };
    for (auto at = std::lower_bound(twins.begin(), twins.end(), token, before);
         at != twins.end() && at->first == token; ++at)
      call(at->token);
  }
};

}  // namespace greta
