// The encoders, each of which cuts ordinary text into tokens in its own way, and what they share.
#pragma once
#include "text/tokenizer/tokenizer.h"

namespace greta {

struct SplitRule;

// `unknown` is the token for what has none, or kNoToken. The vocabulary outlives the encoder.
Status make_spm_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown,
                        std::unique_ptr<TextEncoder>* out);
Status make_bpe_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown, const SplitRule& rule,
                        const Log& log, std::unique_ptr<TextEncoder>* out);
Status make_wpm_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown,
                        std::unique_ptr<TextEncoder>* out);
Status make_ugm_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown, bool add_space_prefix,
                        std::unique_ptr<TextEncoder>* out);

// tokenizer.ggml.scores, one for each token.
Status read_scores(const Gguf& gguf, const Vocab& vocab, PackedArray<float>* out);

// The value of a byte piece, "<0x00>" to "<0xFF>" with capitals; -1 for any other text.
int byte_piece(std::string_view text);

// Finds the tokens of the 256 byte pieces, kNoToken where there is none. Fails for a token that is marked as
// a byte but reads otherwise.
Status find_byte_pieces(const Vocab& vocab, int32_t (&out)[256]);

// The tokens that stand for text without a token of its own.
struct Substitute {
  int32_t bytes[256];  // byte pieces
  int32_t unknown;     // or kNoToken
  bool has(std::string_view text) const { return unknown != kNoToken || has_bytes(text); }
  bool has_bytes(std::string_view text) const;
  // Appends the byte pieces of `text`, or the unknown token; if the vocabulary has neither, it is left out.
  void append(std::string_view text, std::vector<int32_t>* out, EncodeNotes* notes) const;
};

// Removes, from `start` on, all but the first of several unknown tokens in a row, as SentencePiece does.
void join_unknown(int32_t unknown, size_t start, std::vector<int32_t>* out);

constexpr std::string_view kSpaceMarkText = "\xE2\x96\x81";  // U+2581, for a space in the texts of tokens

// Returns true if a space mark follows another character in the token.
bool crosses_words(std::string_view token);

// Returns true if no token of ordinary text crosses words. Then words are encoded one by one.
bool has_words_apart(const Vocab& vocab);

// The end of the word at text[from]: the next space or mark that follows another character.
size_t marked_word_end(std::string_view text, size_t from);

// Sets *out to the word with each space written as a mark.
void mark_spaces(std::string_view word, std::string* out);

// Appends the bytes that a token of a byte-level BPE vocabulary stands for.
void append_bpe_bytes(std::string_view text, std::string* out);

}  // namespace greta
