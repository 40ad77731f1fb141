// One pass over the tokens checks each of them and enters it into the hash table.
#include "text/tokenizer/vocab.h"

#include <algorithm>

#include "text/unicode/unicode.h"

namespace greta {

static uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return uint64_t(product) ^ uint64_t(product >> 64);
}

constexpr uint64_t kMixA = 0x9E3779B97F4A7C15, kMixB = 0xD6E8FEB86659FD93;  // odd, bits well spread

uint64_t hash_text(std::string_view text) {
  const uint8_t* at = reinterpret_cast<const uint8_t*>(text.data());
  size_t left = text.size();
  uint64_t hash = left + kMixB;
  for (; left >= 8; left -= 8, at += 8) hash = mix(hash ^ load_unaligned<uint64_t>(at), kMixA);
  uint64_t last = 0;
  for (size_t i = 0; i < left; ++i) last |= uint64_t(at[i]) << (8 * i);
  return mix(hash ^ last, kMixA) ^ hash >> 29;
}

uint64_t hash_pair(uint32_t left, uint32_t right) {
  return mix((uint64_t(left) << 32 | right) ^ kMixB, kMixA);
}

void SlotTable::reserve(uint64_t count) {
  uint64_t slots = 16;
  while (slots * 3 < count * 4) slots *= 2;
  slots_.assign(slots, 0);
  mask_ = slots - 1;
}

bool SlotTable::insert(uint64_t hash, uint32_t index) {
  for (uint32_t i = 0; i <= kMaxProbes; ++i) {
    uint32_t& slot = slots_[(hash + i) & mask_];
    if (slot == 0) return slot = index + 1, true;
  }
  return false;
}

bool Vocab::plain(uint32_t id) const {
  const TokenKind kind = this->kind(id);
  return kind != TokenKind::Control && kind != TokenKind::Unknown && kind != TokenKind::Byte;
}

int32_t Vocab::find(std::string_view text) const {
  return table_.find(hash_text(text), [&](uint32_t id) { return this->text(id) == text; });
}

int32_t Vocab::find_plain(std::string_view text) const {
  const int32_t id = find(text);
  return id >= 0 && plain(uint32_t(id)) ? id : kNoToken;
}

Status Vocab::open(const Gguf& gguf) {
  StringArray tokens;
  GRETA_TRY(gguf.require("tokenizer.ggml.tokens"));
  GRETA_TRY(gguf.get_strings("tokenizer.ggml.tokens", &tokens));
  GRETA_TRY(gguf.get_i32_array("tokenizer.ggml.token_type", &kinds_));
  if (tokens.count == 0 || tokens.count > kMaxTokens)
    return fail(Code::File, "tokenizer.ggml.tokens has %llu tokens, expected 1 to %llu",
                (unsigned long long)tokens.count, (unsigned long long)kMaxTokens);
  if (kinds_.count != tokens.count && gguf.find("tokenizer.ggml.token_type"))
    return fail(Code::File, "tokenizer.ggml.token_type has %llu values, expected %llu, one for each token",
                (unsigned long long)kinds_.count, (unsigned long long)tokens.count);
  for (uint64_t id = 0; id < kinds_.count; ++id)
    if (kinds_[id] < 0 || kinds_[id] > int32_t(TokenKind::Byte))
      return fail(Code::File, "tokenizer.ggml.token_type of token %llu is %d, expected 0 to 6",
                  (unsigned long long)id, kinds_[id]);

  texts_ = tokens.data;
  offsets_.reserve(tokens.count);
  table_.reserve(tokens.count);
  uint64_t offset = 0;  // below kMaxHeaderBytes, so 32 bits hold it
  for (const std::string_view text : tokens) {
    const uint32_t id = uint32_t(offsets_.size());
    if (text.size() > kMaxTokenBytes)
      return fail(Code::File, "token %u has %llu bytes, expected at most %llu", id,
                  (unsigned long long)text.size(), (unsigned long long)kMaxTokenBytes);
    offsets_.push_back(uint32_t(offset));
    offset += 8 + text.size();
    longest_bytes_ = std::max<uint64_t>(longest_bytes_, text.size());
    if (text.empty()) continue;  // a hole has an id, but is found in no text and prints as nothing
    const uint64_t hash = hash_text(text);
    const auto same = [&](uint32_t other) { return this->text(other) == text; };
    const int32_t twin = table_.find(hash, same);
    if (twin >= 0) {
      if (!plain(uint32_t(twin)) && plain(id)) table_.replace(hash, id, same);
    } else if (!table_.insert(hash, id)) {
      return fail(Code::File, "token %u %s: more than %u tokens share its place in a hash table", id,
                  Quoted(text).c_str(), SlotTable::kMaxProbes);
    }
  }
  return {};
}

}  // namespace greta
