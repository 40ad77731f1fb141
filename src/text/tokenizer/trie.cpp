// The tree is made level by level from the sorted texts, so that the children of a node lie together.
#include "text/tokenizer/trie.h"

#include <algorithm>

namespace greta {

Status TokenTrie::open(const Vocab& vocab, uint64_t max_bytes) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < vocab.size(); ++id)
    if (vocab.plain(id) && !vocab.text(id).empty() && vocab.text(id).size() <= max_bytes) ids.push_back(id);
  std::sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) {
    const int order = vocab.text(a).compare(vocab.text(b));
    return order ? order < 0 : a < b;
  });

  struct Span {
    uint32_t low, high, depth;  // of ids whose texts agree in `depth` bytes: what lies below a node
  };
  std::vector<Span> spans = {{0, uint32_t(ids.size()), 0}};
  nodes_.assign(1, {0, kNoToken, 0, 0});
  for (uint32_t node = 0; node < nodes_.size(); ++node) {
    Span span = spans[node];
    while (span.low < span.high && vocab.text(ids[span.low]).size() == span.depth) {
      if (nodes_[node].token == kNoToken) nodes_[node].token = int32_t(ids[span.low]);
      ++span.low;
    }
    nodes_[node].first = uint32_t(nodes_.size());
    for (uint32_t low = span.low; low < span.high;) {
      const char byte = vocab.text(ids[low])[span.depth];
      uint32_t high = low + 1;
      while (high < span.high && vocab.text(ids[high])[span.depth] == byte) ++high;
      if (nodes_.size() == kMaxNodes)
        return fail(Code::File, "the tokens have more than %u different beginnings", kMaxNodes);
      nodes_.push_back({0, kNoToken, 0, uint8_t(byte)});
      spans.push_back({low, high, span.depth + 1});
      ++nodes_[node].count;
      low = high;
    }
  }
  std::fill(std::begin(of_root_), std::end(of_root_), kNowhere);
  for (uint32_t i = 0; i < nodes_[0].count; ++i) of_root_[nodes_[1 + i].byte] = 1 + i;
  return {};
}

uint32_t TokenTrie::child(uint32_t node, char byte) const {
  if (node == kRoot) return of_root_[uint8_t(byte)];
  const Node* first = nodes_.data() + nodes_[node].first;
  const Node* last = first + nodes_[node].count;
  const Node* at =
      std::lower_bound(first, last, uint8_t(byte), [](const Node& n, uint8_t b) { return n.byte < b; });
  return at != last && at->byte == uint8_t(byte) ? uint32_t(at - nodes_.data()) : kNowhere;
}

}  // namespace greta
