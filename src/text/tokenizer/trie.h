// The tokens that ordinary text may be cut into, as a tree. Each step down from the root is one byte.
#pragma once
#include <string_view>
#include <vector>

#include "text/tokenizer/vocab.h"

namespace greta {

class TokenTrie {
 public:
  static constexpr uint32_t kRoot = 0, kNowhere = UINT32_MAX;
  static constexpr uint32_t kMaxNodes = 1 << 24;  // 200 MB; a vocabulary of 250,000 tokens makes a million

  // Takes the tokens of at most max_bytes bytes. Fails if they make too many nodes.
  Status open(const Vocab& vocab, uint64_t max_bytes);

  uint32_t child(uint32_t node, char byte) const;  // kNowhere if there is none
  int32_t token(uint32_t node) const { return nodes_[node].token; }

 private:
  struct Node {
    uint32_t first;  // the first child; the others follow it, in the order of their bytes
    int32_t token;   // the token that ends here, or kNoToken
    uint16_t count;  // how many children there are
    uint8_t byte;
  };
  std::vector<Node> nodes_;
  uint32_t of_root_[256];
};

}  // namespace greta
