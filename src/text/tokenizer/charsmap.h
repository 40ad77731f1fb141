// SentencePiece's precompiled_charsmap says which beginnings of a text to replace, and with what.
//
//   u32 bytes   then so many bytes of units, u32 each: a double array in the layout of darts-clone
//   texts       the replacements, each ended by a zero byte
//
// The units are a tree over bytes. The child of a node by byte c lies at base ^ c and has c as its label. A
// node that ends a key has a unit at its base that holds the replacement's offset and bit 31. All of it comes
// from a file, so open checks every unit; then no text can lead astray.
#pragma once
#include <string_view>

#include "gguf/gguf.h"

namespace greta {

class Charsmap {
 public:
  static constexpr uint32_t kMaxKeyBytes = 64, kMaxReplacementBytes = 512;

  // Reads tokenizer.ggml.precompiled_charsmap. A file without this key has no replacements.
  Status open(const Gguf& gguf);

  // The longest key that `text` begins with: its bytes, 0 if there is none, and its replacement.
  void match(std::string_view text, uint32_t* out_bytes, std::string_view* out_replacement,
             uint64_t* steps) const;

 private:
  Status check_unit(uint32_t index) const;

  PackedArray<uint32_t> units_;
  std::string_view replacements_;
};

}  // namespace greta
