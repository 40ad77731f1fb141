#include "text/tokenizer/vocab_trie.h"

#include <algorithm>
#include <string>

#include "text/tokenizer/tokenizer.h"

namespace greta {

void VocabTrie::build(const Tokenizer& tokenizer) {
  // The texts lie one after another; a Piece says where the text of a token is.
  struct Piece {
    uint64_t at;
    uint32_t bytes;
    int32_t token;
  };
  std::string text;
  std::vector<Piece> pieces;
  for (uint32_t id = 0; id < tokenizer.size(); ++id) {
    if (tokenizer.is_end(int32_t(id))) continue;
    all.push_back(int32_t(id));
    const size_t at = text.size();
    tokenizer.append_piece(int32_t(id), false, &text);
    if (text.size() > at && text.size() - at < UINT16_MAX)
      pieces.push_back({at, uint32_t(text.size() - at), int32_t(id)});
  }
  const auto view = [&](const Piece& p) { return std::string_view(text).substr(p.at, p.bytes); };
  std::sort(pieces.begin(), pieces.end(), [&](const Piece& a, const Piece& b) {
    const int order = view(a).compare(view(b));
    return order != 0 ? order < 0 : a.token < b.token;
  });
  std::vector<uint32_t> path;  // nodes from the start to the last piece's end
  std::string_view last;
  for (const Piece& piece : pieces) {
    const std::string_view bytes = view(piece);
    if (bytes == last && !path.empty()) {
      nodes[path.back()].more = true;
      twins.push_back({nodes[path.back()].token, piece.token});
      continue;
    }
    size_t common = 0;
    while (common < last.size() && common < bytes.size() && last[common] == bytes[common]) ++common;
    for (; path.size() > common; path.pop_back()) nodes[path.back()].skip = uint32_t(nodes.size());
    for (size_t i = common; i < bytes.size(); ++i) {
      path.push_back(uint32_t(nodes.size()));
      nodes.push_back({0, kNoToken, uint16_t(i + 1), uint8_t(bytes[i]), false});
    }
    nodes[path.back()].token = piece.token;
    last = bytes;
    longest = std::max(longest, piece.bytes);
  }
  for (const uint32_t node : path) nodes[node].skip = uint32_t(nodes.size());
  std::sort(twins.begin(), twins.end(), [](const Twin& a, const Twin& b) {
    return a.first != b.first ? a.first < b.first : a.token < b.token;
  });
}

const VocabTrie& Tokenizer::trie() const {
  const std::lock_guard lock(trie_mutex_);
  if (!trie_) {
    auto made = std::make_unique<VocabTrie>();
    made->build(*this);
    trie_ = std::move(made);
  }
  return *trie_;
}

}  // namespace greta
