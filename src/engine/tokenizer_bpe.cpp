// Byte-level BPE: each word is its bytes, one token each, and the neighbours whose merge comes
// first in the file's list are merged, leftmost first on a tie, until none are.
//
// Tokens and merges are written in an alphabet of 256 visible characters, one for each byte.
#include <algorithm>
#include <array>

#include "engine/tokenizer_encoders.h"
#include "engine/tokenizer_split.h"

namespace greta {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Printable Latin-1 characters stand for themselves; the other 68 bytes for U+0100 and on.
constexpr auto kByteToCode = [] {
  std::array<uint16_t, 256> codes{};
  uint16_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool visible = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    codes[byte] = visible ? uint16_t(byte) : next++;
  }
  return codes;
}();
constexpr uint32_t kCodes = 256 + 68;
constexpr auto kCodeToByte = [] {  // -1 for characters outside the alphabet
  std::array<int16_t, kCodes> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  for (uint32_t byte = 0; byte < 256; ++byte) bytes[kByteToCode[byte]] = int16_t(byte);
  return bytes;
}();

struct Merge {
  uint32_t left, right, joined;  // token ids
};

struct Symbol {
  int32_t id;              // kNoToken: a byte without a token
  uint32_t before, after;  // indices of neighbours, kNone at the ends
};

struct Pair {
  uint32_t rank, left;
  bool operator<(const Pair& other) const {  // the heap's top is the greatest: rank 0, leftmost
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

struct Scratch {
  std::string mapped;
  std::vector<Symbol> symbols;
  std::vector<Pair> pairs;
};

class BpeEncoder : public TextEncoder {
 public:
  BpeEncoder(const Vocab& vocab, int32_t unknown, const SplitRule& rule)
      : vocab_(vocab), unknown_(unknown), rule_(rule) {}
  Status open(const Gguf& gguf, const Log& log);
  Status encode(std::string_view text, std::vector<int32_t>* out) const override;

 private:
  Status read_merge(std::string_view text, uint32_t* skipped, std::string* joined);
  void add_pair(Scratch& scratch, uint32_t left) const;
  Status encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>* out) const;
  void merge_all(Scratch& scratch) const;

  const Vocab& vocab_;
  int32_t unknown_;
  const SplitRule& rule_;
  int32_t bytes_[256];
  std::vector<Merge> merges_;  // by rank
  SlotTable ranks_;            // by the pair of ids
};

Status BpeEncoder::open(const Gguf& gguf, const Log& log) {
  for (uint32_t byte = 0; byte < 256; ++byte) {
    char text[4];
    bytes_[byte] = vocab_.find_plain({text, encode_utf8(kByteToCode[byte], text)});
  }
  StringArray texts;
  GRETA_TRY(gguf.require("tokenizer.ggml.merges"));
  GRETA_TRY(gguf.get_strings("tokenizer.ggml.merges", &texts));
  if (texts.count > kMaxMerges)
    return fail(Code::File, "tokenizer.ggml.merges has %llu merges, expected at most %llu",
                (unsigned long long)texts.count, (unsigned long long)kMaxMerges);
  merges_.reserve(texts.count);
  ranks_.reserve(texts.count);
  uint32_t skipped = 0;
  std::string joined;
  for (const std::string_view text : texts) GRETA_TRY(read_merge(text, &skipped, &joined));
  if (skipped)
    log(LogLevel::Warning,
        "%s: %u of %llu merges name pieces that are no tokens, or repeat an earlier one; skipped",
        gguf.name(), skipped, (unsigned long long)texts.count);
  return {};
}

// "left right": the alphabet has no space, so the first one parts them.
Status BpeEncoder::read_merge(std::string_view text, uint32_t* skipped, std::string* joined) {
  const size_t space = text.find(' ', 1);
  if (space == text.npos || space + 1 == text.size()) return ++*skipped, Status{};
  joined->assign(text, 0, space).append(text, space + 1);
  const int32_t left = vocab_.find_plain(text.substr(0, space));
  const int32_t right = left < 0 ? kNoToken : vocab_.find_plain(text.substr(space + 1));
  const int32_t both = right < 0 ? kNoToken : vocab_.find_plain(*joined);
  if (both < 0) return ++*skipped, Status{};
  const Merge merge{uint32_t(left), uint32_t(right), uint32_t(both)};
  const uint64_t hash = hash_pair(merge.left, merge.right);
  const auto same = [&](uint32_t i) {
    return merges_[i].left == merge.left && merges_[i].right == merge.right;
  };
  if (ranks_.find(hash, same) >= 0) return ++*skipped, Status{};
  if (!ranks_.insert(hash, uint32_t(merges_.size())))
    return fail(Code::File, "merge %s: more than %u merges share its place in a hash table",
                Quoted(text).c_str(), SlotTable::kMaxProbes);
  merges_.push_back(merge);
  return {};
}

void BpeEncoder::add_pair(Scratch& scratch, uint32_t left) const {
  if (left == kNone || scratch.symbols[left].after == kNone) return;
  const int32_t a = scratch.symbols[left].id, b = scratch.symbols[scratch.symbols[left].after].id;
  if (a < 0 || b < 0) return;
  const int32_t rank = ranks_.find(hash_pair(uint32_t(a), uint32_t(b)), [&](uint32_t i) {
    return merges_[i].left == uint32_t(a) && merges_[i].right == uint32_t(b);
  });
  if (rank < 0) return;
  scratch.pairs.push_back({uint32_t(rank), left});
  std::push_heap(scratch.pairs.begin(), scratch.pairs.end());
}

void BpeEncoder::merge_all(Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  scratch.pairs.clear();
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i) add_pair(scratch, i);
  while (!scratch.pairs.empty()) {
    std::pop_heap(scratch.pairs.begin(), scratch.pairs.end());
    const Pair best = scratch.pairs.back();
    scratch.pairs.pop_back();
    const Merge& merge = merges_[best.rank];
    Symbol& left = symbols[best.left];
    if (left.id != int32_t(merge.left) || left.after == kNone) continue;  // merged meanwhile
    Symbol& right = symbols[left.after];
    if (right.id != int32_t(merge.right)) continue;
    left.id = int32_t(merge.joined);
    right.id = kNoToken;  // gone: no longer linked
    left.after = right.after;
    if (left.after != kNone) symbols[left.after].before = best.left;
    add_pair(scratch, left.before);
    add_pair(scratch, best.left);
  }
}

Status BpeEncoder::encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>* out) const {
  if (rule_.has(kWholeWords) && word.size() <= vocab_.longest_bytes()) {
    scratch.mapped.clear();
    for (const char c : word) append_utf8(kByteToCode[uint8_t(c)], &scratch.mapped);
    const int32_t id = vocab_.find_plain(scratch.mapped);
    if (id != kNoToken) return out->push_back(id), Status{};
  }
  scratch.symbols.clear();
  for (uint32_t i = 0; i < word.size(); ++i) {
    const uint32_t after = i + 1 < word.size() ? i + 1 : kNone;
    scratch.symbols.push_back({bytes_[uint8_t(word[i])], i ? i - 1 : kNone, after});
  }
  if (word.size() > 1) merge_all(scratch);
  for (uint32_t i = 0; i != kNone; i = scratch.symbols[i].after) {
    int32_t id = scratch.symbols[i].id;
    if (id == kNoToken) id = unknown_;
    if (id == kNoToken)
      return fail(Code::Unsupported,
                  "the vocabulary has no token for byte 0x%02X of %s, and no unknown token", uint8_t(word[i]),
                  Quoted(word).c_str());
    out->push_back(id);
  }
  return {};
}

Status BpeEncoder::encode(std::string_view text, std::vector<int32_t>* out) const {
  std::vector<uint32_t> ends;
  split_words(rule_, text, &ends);
  Scratch scratch;
  uint32_t start = 0;
  for (const uint32_t end : ends) {
    GRETA_TRY(encode_word(text.substr(start, end - start), scratch, out));
    start = end;
  }
  return {};
}

}  // namespace

void append_bpe_bytes(std::string_view text, std::string* out) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const int byte = point.code < kCodes ? kCodeToByte[point.code] : -1;
    if (byte >= 0)
      out->push_back(char(byte));
    else
      out->append(text, at, point.bytes);  // outside the alphabet: stands for itself
    at += point.bytes;
  }
}

Status make_bpe_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown, const Log& log,
                        bool* out_add_bos, std::unique_ptr<TextEncoder>* out) {
  std::string_view name;
  GRETA_TRY(gguf.get_string("tokenizer.ggml.pre", &name));
  const SplitRule* rule = find_split_rule(name);
  if (!rule) {
    rule = &default_split_rule();
    log(LogLevel::Warning,
        "%s: pre-tokenizer %s is not known; text is cut as \"%s\" does, and the model may do badly",
        gguf.name(), Quoted(name).c_str(), rule->name);
  }
  *out_add_bos = rule->has(kAddBos);
  auto encoder = std::make_unique<BpeEncoder>(vocab, unknown, *rule);
  GRETA_TRY(encoder->open(gguf, log));
  *out = std::move(encoder);
  return {};
}

}  // namespace greta
