// A Tokenizer turns text into token ids and back, for the vocabularies that tokenizer.ggml.model names
// (docs/tokenizers.md). These rules hold for all of them:
//   text      Invalid UTF-8 is read as U+FFFD. The time is n log n in the length of the text at most.
//   special   User-defined tokens are always taken out of the text first. Control tokens and the unknown
//             token are taken out only with parse_special. At each place the longest one wins.
//   missing   A character without a token becomes the tokens of its bytes, or else the unknown token, which
//             stands once for a run of such characters. If the vocabulary has neither, the character is left
//             out: encode never fails for want of a token. In a byte-level vocabulary, a byte without a token
//             is left out and the rest of its character stays. The first time that a tokenizer leaves
//             something out, it logs a warning.
//   twins     Of tokens with the same text, the lowest id is used.
// encode and decode may run on several threads: once a Tokenizer is open, only that warning and the trie
// change, and both are safe.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocab.h"
#include "text/tokenizer/vocab_trie.h"
#include "text/unicode/unicode.h"

namespace greta {

constexpr uint64_t kMaxTextBytes = 1ull << 30;
constexpr uint64_t kMaxSpecialBytes = 512;  // longer special tokens are not found in the text

struct EncodeOptions {
  bool add_special = true;             // the BOS and EOS tokens that the vocabulary asks for
  bool parse_special = false;          // control tokens are found in the text
  uint64_t* steps = nullptr;           // if set, the call adds the number of its steps
  std::span<const size_t> seams = {};  // ascending places in a text of valid UTF-8 that control tokens and
                                       // the unknown token do not reach across
  int (*should_stop)(const void* user) = nullptr;  // asked now and then; anything but 0 ends the call
  const void* user = nullptr;                      // passed to should_stop
};

// What an encoder reports to the call of encode that uses it, and how it learns that the call shall end.
struct EncodeNotes {
  explicit EncodeNotes(const EncodeOptions& given) : options(given) {}
  const EncodeOptions& options;
  uint64_t steps = 0;    // one for each look-up, pop of a heap or comparison
  std::string left_out;  // the first character or word that has no token; empty if none was left out
  void leave_out(std::string_view text) {
    if (left_out.empty()) left_out = text;
  }

  // Whether the caller has said that the call shall end. Loops over the text ask it in each round and leave
  // if it says so; the caller is asked in every 65,536th round.
  bool stopped() {
    if (options.should_stop && !stopped_ && ++rounds_ % (1 << 16) == 0)
      stopped_ = options.should_stop(options.user) != 0;
    return stopped_;
  }

 private:
  uint64_t rounds_ = 0;
  bool stopped_ = false;
};

// Cuts a stretch of ordinary text into tokens. `encode` fails only if a normalized text gets too long.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  virtual Status encode(std::string_view text, std::vector<int32_t>* out, EncodeNotes* notes) const = 0;
};

enum class TokenizerKind {
  None,  // "none", "no_vocab": without a vocabulary only the empty text can be encoded
  Spm,   // "llama": SentencePiece's merges by score
  Bpe,   // "gpt2", "gemma4": merges by rank
  Wpm,   // "bert": WordPiece, the longest pieces from the left
  Ugm    // "t5": SentencePiece's unigram, the pieces of the best sum of scores
};

class Tokenizer {
 public:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Reads the vocabulary of `gguf`. The file, and what `log` writes to, must outlive this object, since
  // encode logs too.
  Status open(const Gguf& gguf, const Log& log);

  uint32_t size() const { return vocab_.size(); }
  const Vocab& vocab() const { return vocab_; }
  TokenizerKind kind() const { return kind_; }

  // Appends the ids of `text`, whatever its bytes are. Fails only for a text that is too long, where there is
  // no vocabulary, or where should_stop said so.
  Status encode(std::string_view text, EncodeOptions options, std::vector<int32_t>* out) const;

  // Appends the bytes that an id stands for. Control tokens and the unknown token stand for nothing
  // unless `special` asks for their text. A piece may end within a character: see Utf8Stream.
  void append_piece(int32_t id, bool special, std::string* out) const;
  std::string piece(int32_t id, bool special = false) const;

  // Gives the text of ids as valid UTF-8. The one space that encoding puts before the text is dropped.
  std::string decode(const int32_t* ids, size_t count, bool special = false) const;

  int32_t find(std::string_view text) const { return vocab_.find(text); }  // the token of this text
  int32_t bos() const { return bos_; }  // kNoToken if there is none; so are the following
  int32_t eos() const { return eos_; }
  int32_t eot() const { return eot_; }
  int32_t eom() const { return eom_; }
  int32_t unknown() const { return unknown_; }
  int32_t padding() const { return padding_; }
  int32_t separator() const { return separator_; }
  bool adds_bos() const { return add_bos_ && bos_ != kNoToken; }
  bool adds_eos() const { return add_eos_ && eos_ != kNoToken; }
  bool adds_space_prefix() const { return add_space_prefix_; }

  // Tokens that end generation: eos, eot, eom, and those that are known by their text.
  bool is_end(int32_t id) const;
  const std::vector<int32_t>& ends() const { return ends_; }  // ascending

  // The vocabulary as grammars walk it, made when it is first asked for.
  const VocabTrie& trie() const;

 private:
  Status read_special_id(const Gguf& gguf, const char* name, int32_t* out) const;
  Status read_special_ids(const Gguf& gguf);
  Status open_encoder(const Gguf& gguf, std::string_view model, const Log& log);
  Status read_flags(const Gguf& gguf, const Log& log);
  Status read_strips(const Gguf& gguf);
  void find_ends();
  void index_specials();
  uint32_t match_special(std::string_view text, size_t most, int32_t* out_id, uint64_t* steps) const;
  bool strips_after(int32_t id) const;
  void warn_left_out(std::string_view text) const;

  const Gguf* gguf_ = nullptr;
  Log log_;
  mutable std::atomic<bool> warned_ = false;
  Vocab vocab_;
  TokenizerKind kind_ = TokenizerKind::None;
  bool has_marks_ = false;  // texts of tokens have U+2581 for a space; else they are in BPE's alphabet
  bool add_bos_ = false, add_eos_ = false, add_separator_ = false, add_space_prefix_ = false;
  bool force_bos_ = false;            // whatever the file says
  bool strip_after_special_ = false;  // Phi-3's vocabularies eat white space after a special token
  int32_t strip_before_ = kNoToken;   // this token eats white space before it
  int32_t bos_ = kNoToken, eos_ = kNoToken, eot_ = kNoToken, eom_ = kNoToken;
  int32_t unknown_ = kNoToken, padding_ = kNoToken, separator_ = kNoToken;
  std::vector<int32_t> ends_;
  std::vector<uint32_t> specials_;  // ids of tokens that are cut out of the text, sorted by their text
  bool special_first_[256] = {};    // whether one of them starts with this byte
  std::unique_ptr<TextEncoder> encoder_;
  mutable std::mutex trie_mutex_;
  mutable std::unique_ptr<const VocabTrie> trie_;
};

}  // namespace greta
