// WPM is BERT's WordPiece. Text is made plain (without controls, in lower case, without accents) and cut at
// white space, punctuation and Chinese characters. Each word is taken apart from the left, the longest token
// first. A token that begins a word begins with U+2581, which the file's converter put there.
#include "text/tokenizer/encoders.h"
#include "text/tokenizer/trie.h"

namespace greta {
namespace {

constexpr uint32_t kMaxWordCharacters = 100;  // longer words are unknown, as in BERT's own tokenizer
constexpr uint64_t kMaxWordBytes = 3 + 4 * kMaxWordCharacters;

struct Range {
  uint32_t first, last;
};

// What BERT's tokenizer calls Chinese. The fifth begins where its widely used implementation in Rust has it,
// at U+2B920; in BERT's own code it is U+2B820.
constexpr Range kChinese[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
                              {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};

bool is_chinese(uint32_t code) {
  for (const Range& range : kChinese)
    if (code >= range.first && code <= range.last) return true;
  return false;
}

bool stands_alone(uint32_t code) {
  const CharClass kind = char_class(code);
  return is_punctuation(kind) || (code < 128 && kind == CharClass::Symbol);
}

// Returns true if this character is removed from the text. BERT's tokenizer takes three controls for white
// space, and removes the other controls, even those that Unicode calls white space.
bool is_cleaned(uint32_t code, CharClass kind) {
  return kind == CharClass::Control || code == kReplacement || code == '\v' || code == '\f' || code == 0x85;
}

struct Word {
  std::string text{kSpaceMarkText};
  uint32_t characters = 0;
  void add(uint32_t code) {
    append_utf8(code, &text);
    ++characters;
  }
  void clear() {
    text = kSpaceMarkText;
    characters = 0;
  }
};

class WpmEncoder : public TextEncoder {
 public:
  WpmEncoder(const Vocab& vocab, int32_t unknown) : vocab_(vocab), unknown_(unknown) {}
  Status open(const Gguf& gguf);
  Status encode(std::string_view text, std::vector<int32_t>* out, EncodeNotes* notes) const override;

 private:
  void end_word(Word* word, std::vector<int32_t>* out, EncodeNotes* notes) const;
  void add_alone(uint32_t code, Word* word, std::vector<int32_t>* out, EncodeNotes* notes) const;

  const Vocab& vocab_;
  int32_t unknown_;
  bool lower_ = true, strip_accents_ = true;
  TokenTrie trie_;
};

Status WpmEncoder::open(const Gguf& gguf) {
  GRETA_TRY(gguf.get_bool("tokenizer.ggml.normalizer.lowercase", &lower_));
  strip_accents_ = lower_;
  GRETA_TRY(gguf.get_bool("tokenizer.ggml.normalizer.strip_accents", &strip_accents_));
  return trie_.open(vocab_, kMaxWordBytes);
}

void WpmEncoder::end_word(Word* word, std::vector<int32_t>* out, EncodeNotes* notes) const {
  if (word->characters == 0) return;
  const size_t first = out->size();
  const std::string& text = word->text;
  size_t at = 0;
  while (at < text.size() && word->characters <= kMaxWordCharacters) {
    size_t end = at;
    int32_t longest = kNoToken;
    uint32_t node = TokenTrie::kRoot;
    // Within a word U+2581 is itself, and the tokens that begin with it are for where a word begins.
    const bool marked = at > 0 && text.compare(at, kSpaceMarkText.size(), kSpaceMarkText) == 0;
    const size_t stop = marked ? at + kSpaceMarkText.size() : text.size();
    for (size_t to = at; to < stop; ++to) {
      ++notes->steps;
      node = trie_.child(node, text[to]);
      if (node == TokenTrie::kNowhere) break;
      if (trie_.token(node) == kNoToken) continue;
      longest = trie_.token(node);
      end = to + 1;
    }
    if (longest == kNoToken) break;
    out->push_back(longest);
    at = end;
  }
  if (at < text.size()) {  // a word that cannot be cut to its end is unknown as a whole
    out->resize(first);
    if (unknown_ == kNoToken)
      notes->leave_out(std::string_view(text).substr(kSpaceMarkText.size()));
    else
      out->push_back(unknown_);
  }
  word->clear();
}

void WpmEncoder::add_alone(uint32_t code, Word* word, std::vector<int32_t>* out, EncodeNotes* notes) const {
  end_word(word, out, notes);
  word->add(code);
  end_word(word, out, notes);
}

Status WpmEncoder::encode(std::string_view text, std::vector<int32_t>* out, EncodeNotes* notes) const {
  Word word;
  for (const auto& [code_read, bytes, at] : CodePoints(text)) {
    if (notes->stopped()) return {};
    if (is_cleaned(code_read, char_class(code_read))) continue;
    const bool chinese = is_chinese(code_read);
    uint32_t codes[kMaxDecomposed] = {code_read};
    const uint32_t count = strip_accents_ ? decompose(code_read, codes) : 1;
    if (chinese) end_word(&word, out, notes);
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t code = lower_ ? lower_case(codes[i]) : codes[i];
      if (is_space(code))
        end_word(&word, out, notes);
      else if (stands_alone(code))
        add_alone(code, &word, out, notes);
      else if (word.characters <= kMaxWordCharacters)  // a longer word is unknown anyway
        word.add(code);
    }
    if (chinese) end_word(&word, out, notes);
  }
  end_word(&word, out, notes);
  return {};
}

}  // namespace

Status make_wpm_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown,
                        std::unique_ptr<TextEncoder>* out) {
  auto encoder = std::make_unique<WpmEncoder>(vocab, unknown);
  GRETA_TRY(encoder->open(gguf));
  *out = std::move(encoder);
  return {};
}

}  // namespace greta
