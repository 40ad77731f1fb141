// The words that a call to encode has met. Most words of a text are repeats, whose ids are copied. A slot
// points into the text and into the ids, so the cache owns nothing but the slots.
#pragma once
#include <cstring>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocab.h"

namespace greta {

class WordCache {
 public:
  // For a text of this size, which stays where it is.
  explicit WordCache(size_t text_bytes) {
    size_t slots = 64;
    while (slots < kMaxSlots && slots * 8 < text_bytes) slots *= 2;
    slots_.resize(slots);
  }

  // Appends the ids of `word`: those that it had last time, or what encode() appends.
  template <class Encode>
  void append(std::string_view word, std::vector<int32_t>* out, Encode encode) {
    if (word.size() > kMaxBytes) return encode();
    Slot& slot = slots_[hash_text(word) & (slots_.size() - 1)];
    if (slot.bytes == word.size() && memcmp(slot.at, word.data(), word.size()) == 0) {
      const size_t start = out->size();
      out->resize(start + slot.ids);
      std::copy_n(out->begin() + ptrdiff_t(slot.first), slot.ids, out->begin() + ptrdiff_t(start));
      return;
    }
    const size_t first = out->size();
    encode();
    slot = {word.data(), uint32_t(word.size()), uint32_t(out->size() - first), first};
  }

 private:
  static constexpr size_t kMaxSlots = 1 << 14, kMaxBytes = 64;
  struct Slot {
    const char* at = nullptr;
    uint32_t bytes = 0, ids = 0;
    size_t first = 0;  // of the ids, in the output
  };
  std::vector<Slot> slots_;
};

}  // namespace greta
