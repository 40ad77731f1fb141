#include "engine/session/text_stream.h"

#include <algorithm>

namespace greta {

bool TextStream::push(int32_t token, std::string* out) {
  piece_.clear();
  whole_.clear();
  tokenizer_.append_piece(token, std::binary_search(spoken_.begin(), spoken_.end(), token), &piece_);
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
