// Makes text from the tokens of an answer as they come: valid UTF-8 that contains no stop string. Bytes of an
// unfinished character are held back, and so is text with which a stop string may begin.
#pragma once
#include "engine/write/stop.h"
#include "text/text.h"

namespace greta {

class TextStream {
 public:
  // strip_space  removes the space that the vocabulary puts before the first word of a text
  // spoken       control tokens that give their text like others, ascending; they stay the caller's
  TextStream(const Tokenizer& tokenizer, bool strip_space, std::span<const int32_t> spoken)
      : tokenizer_(tokenizer), strip_space_(strip_space), spoken_(spoken) {}
  Status open(std::span<const std::string_view> stops) { return stop_.open(stops); }

  // Appends what `token` completes. Returns false if that ends with a stop string; then only `found` may
  // follow.
  bool push(int32_t token, std::string* out);
  // Appends what is still held back, in which an unfinished character is U+FFFD. Returns false likewise.
  bool finish(std::string* out);
  void begin_anew() { stop_.begin_anew(); }  // after finish(): with text that comes behind something else
  int32_t found() const { return stop_.found(); }  // the index of the stop string, or -1

 private:
  const Tokenizer& tokenizer_;
  bool strip_space_;
  std::span<const int32_t> spoken_;
  StopMatcher stop_;
  Utf8Stream stream_;
  std::string piece_, whole_;
};

}  // namespace greta
