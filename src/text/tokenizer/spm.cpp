// SPM begins with single characters. It merges the neighbours whose joined text is the token of the highest
// score, the leftmost on a tie, until no neighbours make a token.
//
// If no token has a space mark after another character, nothing ever merges across the start of a word. Then
// words are encoded one by one, which gives the same ids with little memory.
#include <algorithm>
#include <cmath>

#include "text/tokenizer/cache.h"
#include "text/tokenizer/encoders.h"

namespace greta {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

struct Symbol {
  uint32_t start, bytes;   // in the chunk; 0 bytes once it is merged into its left neighbour
  uint32_t before, after;  // indices of neighbours, kNone at the ends
  int32_t id;
};

struct Pair {
  float score;
  uint32_t left;   // index of the left symbol
  uint32_t bytes;  // of both together; others mean that the pair is stale
  int32_t id;      // of the joined token
  bool operator<(const Pair& other) const {
    return score != other.score ? score < other.score : left > other.left;
  }
};

struct Scratch {
  std::string chunk;
  std::vector<Symbol> symbols;
  std::vector<Pair> pairs;  // a heap, the best on top
  EncodeNotes& notes;
};

class SpmEncoder : public TextEncoder {
 public:
  explicit SpmEncoder(const Vocab& vocab, int32_t unknown) : vocab_(vocab) { substitute_.unknown = unknown; }
  Status open(const Gguf& gguf);
  Status encode(std::string_view text, std::vector<int32_t>* out, EncodeNotes* notes) const override;

 private:
  void add_pair(Scratch& scratch, uint32_t left) const;
  void encode_chunk(Scratch& scratch, std::vector<int32_t>* out, EncodeNotes* notes) const;

  const Vocab& vocab_;
  Substitute substitute_;
  PackedArray<float> scores_;
  int32_t single_[256];  // tokens of one byte: an ASCII character, or what a special token leaves of another
  bool words_apart_ = true;
};

Status SpmEncoder::open(const Gguf& gguf) {
  GRETA_TRY(read_scores(gguf, vocab_, &scores_));
  words_apart_ = has_words_apart(vocab_);
  for (uint32_t code = 0; code < 256; ++code) {
    const char c = char(code);
    single_[code] = vocab_.find_plain({&c, 1});
  }
  return find_byte_pieces(vocab_, substitute_.bytes);
}

void SpmEncoder::add_pair(Scratch& scratch, uint32_t left) const {
  if (left == kNone || scratch.symbols[left].after == kNone) return;
  const Symbol& first = scratch.symbols[left];
  const uint64_t bytes = uint64_t(first.bytes) + scratch.symbols[first.after].bytes;
  if (bytes > vocab_.longest_bytes()) return;
  scratch.notes.steps += 1 + bytes / 64;  // of a look-up, which hashes the text
  const int32_t id = vocab_.find_plain(std::string_view(scratch.chunk).substr(first.start, bytes));
  if (id == kNoToken) return;
  const float score = scores_[uint32_t(id)];
  scratch.pairs.push_back({std::isnan(score) ? -INFINITY : score, left, uint32_t(bytes), id});
  std::push_heap(scratch.pairs.begin(), scratch.pairs.end());
}

void SpmEncoder::encode_chunk(Scratch& scratch, std::vector<int32_t>* out, EncodeNotes* notes) const {
  const std::string_view chunk = scratch.chunk;
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  scratch.pairs.clear();
  for (const auto& [code, bytes, at] : CodePoints(chunk)) {
    const uint32_t index = uint32_t(symbols.size());
    const int32_t id = bytes == 1 ? single_[uint8_t(chunk[at])] : vocab_.find_plain(chunk.substr(at, bytes));
    symbols.push_back({uint32_t(at), bytes, index ? index - 1 : kNone, index + 1, id});
  }
  symbols.back().after = kNone;
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i) add_pair(scratch, i);

  while (!scratch.pairs.empty() && !scratch.notes.stopped()) {
    ++scratch.notes.steps;
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
  for (uint32_t i = 0; i != kNone; i = symbols[i].after) {
    const Symbol& symbol = symbols[i];
    if (symbol.id != kNoToken)
      out->push_back(symbol.id);
    else
      substitute_.append(chunk.substr(symbol.start, symbol.bytes), out, notes);
  }
}

Status SpmEncoder::encode(std::string_view text, std::vector<int32_t>* out, EncodeNotes* notes) const {
  const size_t first = out->size();
  Scratch scratch{{}, {}, {}, *notes};
  WordCache cache(text.size());
  for (size_t at = 0; at < text.size() && !notes->stopped();) {
    const size_t end = words_apart_ ? marked_word_end(text, at) : text.size();
    const std::string_view word = text.substr(at, end - at);
    cache.append(word, out, [&] {
      mark_spaces(word, &scratch.chunk);
      encode_chunk(scratch, out, notes);
    });
    at = end;
  }
  join_unknown(substitute_.unknown, first, out);
  return {};
}

}  // namespace

Status make_spm_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown,
                        std::unique_ptr<TextEncoder>* out) {
  auto encoder = std::make_unique<SpmEncoder>(vocab, unknown);
  GRETA_TRY(encoder->open(gguf));
  *out = std::move(encoder);
  return {};
}

}  // namespace greta
