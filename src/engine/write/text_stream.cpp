#include "engine/write/text_stream.h"

#include <algorithm>

namespace greta {

// Whether a token stands for no text.
static bool is_silent(const Vocab& vocab, int32_t token) {
  if (token < 0 || uint32_t(token) >= vocab.size()) return false;
  const TokenKind kind = vocab.kind(uint32_t(token));
  return kind == TokenKind::Control || kind == TokenKind::Unknown;
}

static std::string hidden(std::string_view text) {
  std::string out;
  for (const char byte : text) (out += '\xff') += byte;
  return out;
}

bool TextStream::push(int32_t token, std::string* out) {
  piece_.clear();
  whole_.clear();
  const bool spoken = std::binary_search(spoken_.begin(), spoken_.end(), token);
  tokenizer_.append_piece(token, true, &piece_);
  if (!spoken && is_silent(tokenizer_.vocab(), token)) {
    strip_space_ = false;
    return !stop_.push(hidden(piece_), out);
  }
  if (strip_space_ && !piece_.empty() && piece_[0] == ' ') piece_.erase(0, 1);
  strip_space_ = false;
  stream_.push(piece_, &whole_);
  return !stop_.push(whole_, out);
}

bool TextStream::finish(std::string* out) {
  whole_.clear();
  stream_.flush(&whole_);
  if (stop_.push(whole_, out)) return false;
  stop_.flush(out);
  return true;
}

}  // namespace greta
