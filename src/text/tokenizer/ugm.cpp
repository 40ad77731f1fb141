// UGM is SentencePiece's unigram model, as T5 has it. The file's charsmap normalizes the text, spaces become
// marks, and of all ways to cut it into tokens Viterbi's algorithm finds the one with the greatest sum of
// scores. A character without a token costs ten more than the worst token; neighbours of that kind become one
// unknown token, or their byte pieces.
#include <algorithm>
#include <cmath>
#include <utility>

#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/encoders.h"
#include "text/tokenizer/trie.h"

namespace greta {
namespace {

constexpr double kUnknownPenalty = 10;
// Keeps the time linear. SentencePiece's own limit is 512 characters.
constexpr uint64_t kMaxPieceBytes = 512;
constexpr double kMaxScore = 1e30;

struct Best {  // the best way to cut what lies before a place
  double score = -INFINITY;
  uint32_t start = 0;     // of the last token
  int32_t id = kNoToken;  // of the last token; kNoToken for a character without one
};

struct Token {
  int32_t id;
  uint32_t start, end;
};

struct Scratch {
  std::vector<Best> best;
  std::vector<Token> tokens;  // of a word, last first
  EncodeNotes& notes;
};

class UgmEncoder : public TextEncoder {
 public:
  UgmEncoder(const Vocab& vocab, int32_t unknown, bool add_space_prefix)
      : vocab_(vocab), add_space_prefix_(add_space_prefix) {
    substitute_.unknown = unknown;
  }
  Status open(const Gguf& gguf);
  Status encode(std::string_view text, std::vector<int32_t>* out, EncodeNotes* notes) const override;

 private:
  Status normalize(std::string_view text, std::string* out, EncodeNotes* notes) const;
  double score(int32_t id) const;
  void cut(std::string_view word, Scratch& scratch) const;

  const Vocab& vocab_;
  Substitute substitute_;
  bool add_space_prefix_, merge_spaces_ = false, words_apart_ = true;
  double unknown_score_ = -kUnknownPenalty;
  PackedArray<float> scores_;
  Charsmap charsmap_;
  TokenTrie trie_;
};

Status UgmEncoder::open(const Gguf& gguf) {
  GRETA_TRY(read_scores(gguf, vocab_, &scores_));
  GRETA_TRY(gguf.get_bool("tokenizer.ggml.remove_extra_whitespaces", &merge_spaces_));
  GRETA_TRY(find_byte_pieces(vocab_, substitute_.bytes));
  GRETA_TRY(charsmap_.open(gguf));
  double worst = INFINITY;
  for (uint32_t id = 0; id < vocab_.size(); ++id) {
    if (vocab_.plain(id) && vocab_.text(id).size() > kMaxPieceBytes)
      return fail(Code::File, "token %u has %llu bytes, expected at most %llu in a unigram vocabulary", id,
                  (unsigned long long)vocab_.text(id).size(), (unsigned long long)kMaxPieceBytes);
    if (vocab_.kind(id) == TokenKind::Normal) worst = std::min(worst, score(int32_t(id)));
  }
  if (worst < INFINITY) unknown_score_ = worst - kUnknownPenalty;
  words_apart_ = has_words_apart(vocab_);
  return trie_.open(vocab_, kMaxPieceBytes);
}

double UgmEncoder::score(int32_t id) const {
  if (vocab_.kind(uint32_t(id)) == TokenKind::UserDefined) return 0;
  const double score = scores_[uint32_t(id)];
  return std::isnan(score) ? -kMaxScore : std::clamp(score, -kMaxScore, kMaxScore);
}

// Replaces what the charsmap names and writes spaces as marks, with one before the text if the file wants
// that. With merge_spaces_ there is one mark for each run of spaces, and none at the end.
Status UgmEncoder::normalize(std::string_view text, std::string* out, EncodeNotes* notes) const {
  bool in_word = false, started = false;
  for (size_t at = 0; at < text.size() && !notes->stopped();) {
    uint32_t bytes;
    std::string_view written;
    charsmap_.match(text.substr(at), &bytes, &written, &notes->steps);
    if (bytes == 0) {
      bytes = decode_utf8(text, at).bytes;
      written = text.substr(at, bytes);
    }
    at += bytes;
    for (const char c : written) {
      const bool space = c == ' ';
      if (merge_spaces_ ? !space && !in_word && (started || add_space_prefix_)
                        : !started && add_space_prefix_)
        out->append(kSpaceMarkText);
      if (!space)
        out->push_back(c);
      else if (!merge_spaces_)
        out->append(kSpaceMarkText);
      in_word = !space;
      started |= !space || !merge_spaces_;
    }
    if (out->size() > kMaxTextBytes)
      return fail(Code::Argument, "a text of more than %llu bytes when normalized",
                  (unsigned long long)kMaxTextBytes);
  }
  return {};
}

// Writes the word's tokens to scratch.tokens, the last one first.
void UgmEncoder::cut(std::string_view word, Scratch& scratch) const {
  std::vector<Best>& best = scratch.best;
  best.assign(word.size() + 1, {});
  best[0].score = 0;
  const auto offer = [&](size_t start, size_t end, int32_t id, double score) {
    if (score > best[end].score) best[end] = {score, uint32_t(start), id};
  };
  scratch.tokens.clear();
  for (const auto& [code, bytes, at] : CodePoints(word)) {
    if (scratch.notes.stopped()) return;
    const double before = best[at].score;
    bool alone = false;  // the character is a token
    uint32_t node = TokenTrie::kRoot;
    for (size_t to = at; to < word.size(); ++to) {
      ++scratch.notes.steps;
      node = trie_.child(node, word[to]);
      if (node == TokenTrie::kNowhere) break;
      const int32_t id = trie_.token(node);
      if (id == kNoToken) continue;
      alone |= to + 1 == at + bytes;
      offer(at, to + 1, id, before + score(id));
    }
    if (!alone) offer(at, at + bytes, kNoToken, before + unknown_score_);
  }
  for (size_t end = word.size(); end > 0; end = best[end].start)
    scratch.tokens.push_back({best[end].id, best[end].start, uint32_t(end)});
}

Status UgmEncoder::encode(std::string_view raw, std::vector<int32_t>* out, EncodeNotes* notes) const {
  std::string text;
  Scratch scratch{{}, {}, *notes};
  GRETA_TRY(normalize(raw, &text, notes));
  const std::string_view all = text;
  size_t unknown = 0;  // bytes before `at` that have no token, and are not written yet
  const auto write_unknown = [&](size_t at) {
    const size_t bytes = std::exchange(unknown, 0);
    if (bytes) substitute_.append(all.substr(at - bytes, bytes), out, notes);
  };
  for (size_t at = 0; at < all.size() && !notes->stopped();) {
    const size_t end = words_apart_ ? marked_word_end(all, at) : all.size();
    cut(all.substr(at, end - at), scratch);
    for (auto token = scratch.tokens.rbegin(); token != scratch.tokens.rend(); ++token) {
      if (token->id == kNoToken) {
        unknown += token->end - token->start;
        continue;
      }
      write_unknown(at + token->start);
      out->push_back(token->id);
    }
    at = end;
  }
  write_unknown(all.size());
  return {};
}

}  // namespace

Status make_ugm_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown, bool add_space_prefix,
                        std::unique_ptr<TextEncoder>* out) {
  auto encoder = std::make_unique<UgmEncoder>(vocab, unknown, add_space_prefix);
  GRETA_TRY(encoder->open(gguf));
  *out = std::move(encoder);
  return {};
}

}  // namespace greta
