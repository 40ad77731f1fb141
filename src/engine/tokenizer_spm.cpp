// SPM: from single characters up, the neighbours whose joined text is the token of the highest
// score are merged, leftmost first on a tie, until none are.
//
// If no token has a space mark after another character, nothing ever merges across the start of a
// word, so words are encoded one by one: the same ids, with little memory.
#include <algorithm>
#include <cmath>

#include "engine/tokenizer_encoders.h"

namespace greta {
namespace {

constexpr uint32_t kSpaceMark = 0x2581;  // stands for a space in the texts of tokens
constexpr uint32_t kNone = UINT32_MAX;

struct Symbol {
  uint32_t start, bytes;   // in the chunk; 0 bytes: merged into its left neighbour
  uint32_t before, after;  // indices of neighbours, kNone at the ends
  int32_t id;
};

struct Pair {
  float score;
  uint32_t left;   // index of the left symbol
  uint32_t bytes;  // of both together: tells a stale pair
  int32_t id;      // of the joined token
  bool operator<(const Pair& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

struct Scratch {
  std::string chunk;
  std::vector<Symbol> symbols;
  std::vector<Pair> pairs;  // a heap, the best on top
};

class SpmEncoder : public TextEncoder {
 public:
  explicit SpmEncoder(const Vocab& vocab, int32_t unknown) : vocab_(vocab), unknown_(unknown) {}
  Status open(const Gguf& gguf);
  Status encode(std::string_view text, std::vector<int32_t>* out) const override;

 private:
  void add_pair(Scratch& scratch, uint32_t left) const;
  Status encode_chunk(Scratch& scratch, std::vector<int32_t>* out) const;
  Status emit(const Scratch& scratch, const Symbol& symbol, std::vector<int32_t>* out) const;

  const Vocab& vocab_;
  int32_t unknown_;
  PackedArray<float> scores_;
  int32_t bytes_[256];
  bool words_apart_ = true;
};

// Whether a space mark follows another character in the token.
bool crosses_words(std::string_view token) {
  const std::string_view mark = "\xE2\x96\x81";
  for (size_t at = token.find(mark, 1); at != token.npos; at = token.find(mark, at + 1))
    if (at < 3 || token.substr(at - 3, 3) != mark) return true;
  return false;
}

Status SpmEncoder::open(const Gguf& gguf) {
  GRETA_TRY(gguf.require("tokenizer.ggml.scores"));
  GRETA_TRY(gguf.get_f32_array("tokenizer.ggml.scores", &scores_));
  if (scores_.count != vocab_.size())
    return fail(Code::File, "tokenizer.ggml.scores has %llu values, expected %u, one for each token",
                (unsigned long long)scores_.count, vocab_.size());
  std::fill(std::begin(bytes_), std::end(bytes_), kNoToken);
  for (uint32_t id = 0; id < vocab_.size(); ++id) {
    const std::string_view text = vocab_.text(id);
    const TokenKind kind = vocab_.kind(id);
    if (kind == TokenKind::Byte || !vocab_.has_kinds()) {
      const int byte = byte_piece(text);
      if (byte >= 0 && bytes_[byte] == kNoToken) bytes_[byte] = int32_t(id);
      if (byte < 0 && kind == TokenKind::Byte)
        return fail(Code::File, "token %u is marked as a byte and reads %s, expected <0x00> to <0xFF>", id,
                    Quoted(text).c_str());
    }
    if (kind != TokenKind::Control && kind != TokenKind::Unknown && crosses_words(text)) words_apart_ = false;
  }
  return {};
}

void SpmEncoder::add_pair(Scratch& scratch, uint32_t left) const {
  if (left == kNone || scratch.symbols[left].after == kNone) return;
  const Symbol& first = scratch.symbols[left];
  const uint64_t bytes = uint64_t(first.bytes) + scratch.symbols[first.after].bytes;
  if (bytes > vocab_.longest_bytes()) return;
  const int32_t id = vocab_.find_plain(std::string_view(scratch.chunk).substr(first.start, bytes));
  if (id == kNoToken) return;
  const float score = scores_[uint32_t(id)];
  scratch.pairs.push_back({std::isnan(score) ? -INFINITY : score, left, uint32_t(bytes), id});
  std::push_heap(scratch.pairs.begin(), scratch.pairs.end());
}

Status SpmEncoder::encode_chunk(Scratch& scratch, std::vector<int32_t>* out) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  scratch.pairs.clear();
  for (size_t at = 0; at < scratch.chunk.size();) {
    const uint32_t bytes = decode_utf8(scratch.chunk, at).bytes;
    const uint32_t index = uint32_t(symbols.size());
    const int32_t id = vocab_.find_plain(std::string_view(scratch.chunk).substr(at, bytes));
    symbols.push_back({uint32_t(at), bytes, index ? index - 1 : kNone, index + 1, id});
    at += bytes;
  }
  symbols.back().after = kNone;
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i) add_pair(scratch, i);

  while (!scratch.pairs.empty()) {
    std::pop_heap(scratch.pairs.begin(), scratch.pairs.end());
    const Pair best = scratch.pairs.back();
    scratch.pairs.pop_back();
    Symbol& left = symbols[best.left];
    if (left.bytes == 0 || left.after == kNone) continue;
    Symbol& right = symbols[left.after];
    if (left.bytes + right.bytes != best.bytes) continue;
    left.bytes = best.bytes;
    left.id = best.id;
    right.bytes = 0;
    left.after = right.after;
    if (left.after != kNone) symbols[left.after].before = best.left;
    add_pair(scratch, left.before);
    add_pair(scratch, best.left);
  }
  for (uint32_t i = 0; i != kNone; i = symbols[i].after) GRETA_TRY(emit(scratch, symbols[i], out));
  return {};
}

Status SpmEncoder::emit(const Scratch& scratch, const Symbol& symbol, std::vector<int32_t>* out) const {
  if (symbol.id != kNoToken) return out->push_back(symbol.id), Status{};
  const std::string_view text = std::string_view(scratch.chunk).substr(symbol.start, symbol.bytes);
  const auto missing =
      std::find_if(text.begin(), text.end(), [&](char c) { return bytes_[uint8_t(c)] == kNoToken; });
  if (missing == text.end()) {
    for (const char c : text) out->push_back(bytes_[uint8_t(c)]);
    return {};
  }
  if (unknown_ == kNoToken)
    return fail(Code::Unsupported,
                "the vocabulary has no token for %s: none of its text, none for byte 0x%02X, "
                "no unknown token",
                Quoted(text).c_str(), uint8_t(*missing));
  out->push_back(unknown_);
  return {};
}

Status SpmEncoder::encode(std::string_view text, std::vector<int32_t>* out) const {
  Scratch scratch;
  bool after_mark = true;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const bool mark = point.code == ' ' || point.code == kSpaceMark;
    if (mark && !after_mark && words_apart_) {
      GRETA_TRY(encode_chunk(scratch, out));
      scratch.chunk.clear();
    }
    append_utf8(mark ? kSpaceMark : point.code, &scratch.chunk);
    after_mark = mark;
    at += point.bytes;
  }
  return scratch.chunk.empty() ? Status{} : encode_chunk(scratch, out);
}

}  // namespace

int byte_piece(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    if (c >= '0' && c <= '9')
      value = value * 16 + (c - '0');
    else if (c >= 'A' && c <= 'F')
      value = value * 16 + (c - 'A' + 10);
    else
      return -1;
  }
  return value;
}

Status make_spm_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown,
                        std::unique_ptr<TextEncoder>* out) {
  auto encoder = std::make_unique<SpmEncoder>(vocab, unknown);
  GRETA_TRY(encoder->open(gguf));
  *out = std::move(encoder);
  return {};
}

}  // namespace greta
