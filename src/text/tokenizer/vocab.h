// The vocabulary of a tokenizer: texts that stay in the header of the GGUF file, their kinds, and a hash
// table from text to id. It takes about 9 bytes of heap for a token.
#pragma once
#include <string_view>
#include <vector>

#include "gguf/gguf.h"

namespace greta {

constexpr uint64_t kMaxTokens = 1ull << 20;
constexpr uint64_t kMaxTokenBytes = 1ull << 14;
constexpr uint64_t kMaxMerges = 1ull << 22;
constexpr int32_t kNoToken = -1;

// tokenizer.ggml.token_type
enum class TokenKind : uint8_t { Undefined, Normal, Unknown, Control, UserDefined, Unused, Byte };

// A hash table with open addressing: linear probing over slots that hold index + 1. Runs longer than
// kMaxProbes do not happen by chance, so a file that causes one was made to be slow, and is refused.
class SlotTable {
 public:
  static constexpr uint32_t kMaxProbes = 4096;
  void reserve(uint64_t count);  // at most three quarters full

  // Calls same(index) for entries of this hash until it returns true. Returns that index, or kNoToken.
  template <class Same>
  int32_t find(uint64_t hash, Same same) const {
    for (uint32_t i = 0; i <= kMaxProbes; ++i) {
      const uint32_t slot = slots_[(hash + i) & mask_];
      if (slot == 0) break;
      if (same(slot - 1)) return int32_t(slot - 1);
    }
    return kNoToken;
  }
  [[nodiscard]] bool insert(uint64_t hash, uint32_t index);  // false if there is no place nearby
  template <class Same>
  void replace(uint64_t hash, uint32_t index, Same same) {
    for (uint32_t i = 0; i <= kMaxProbes; ++i) {
      uint32_t& slot = slots_[(hash + i) & mask_];
      if (slot == 0) return;
      if (same(slot - 1)) return void(slot = index + 1);
    }
  }

 private:
  std::vector<uint32_t> slots_;
  uint64_t mask_ = 0;
};

uint64_t hash_text(std::string_view text);
uint64_t hash_pair(uint32_t left, uint32_t right);

class Vocab {
 public:
  // Reads tokenizer.ggml.tokens and .token_type; `gguf` outlives this object.
  Status open(const Gguf& gguf);

  uint32_t size() const { return uint32_t(offsets_.size()); }
  std::string_view text(uint32_t id) const {  // as the file has it
    const uint8_t* at = texts_ + offsets_[id];
    return {reinterpret_cast<const char*>(at + 8), load_unaligned<uint64_t>(at)};
  }
  TokenKind kind(uint32_t id) const { return kinds_.count ? TokenKind(kinds_[id]) : TokenKind::Normal; }
  bool has_kinds() const { return kinds_.count != 0; }
  uint64_t longest_bytes() const { return longest_bytes_; }

  // The token of this text, or kNoToken. Of several, one that ordinary text may be cut into is preferred,
  // then the lowest id.
  int32_t find(std::string_view text) const;

  // The same among tokens that ordinary text may be cut into. These exclude control tokens, the unknown token
  // and byte pieces, so that nothing a user types becomes a control token.
  int32_t find_plain(std::string_view text) const;
  bool plain(uint32_t id) const;  // returns true if it is one of these

 private:
  const uint8_t* texts_ = nullptr;
  std::vector<uint32_t> offsets_;  // from texts_, by id
  PackedArray<int32_t> kinds_;     // by id; empty if the file has none
  SlotTable table_;
  uint64_t longest_bytes_ = 0;
};

}  // namespace greta
