// The two ways to cut ordinary text into tokens.
#pragma once
#include "engine/tokenizer.h"

namespace greta {

// `unknown` is the token for what has none, or kNoToken. The vocabulary outlives the encoder.
Status make_spm_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown,
                        std::unique_ptr<TextEncoder>* out);
Status make_bpe_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown, const Log& log,
                        bool* out_add_bos, std::unique_ptr<TextEncoder>* out);

// The value of a byte piece, "<0x00>" to "<0xFF>" (upper case); -1 for any other text.
int byte_piece(std::string_view text);

// The bytes that a token of a byte-level BPE vocabulary stands for.
void append_bpe_bytes(std::string_view text, std::string* out);

}  // namespace greta
