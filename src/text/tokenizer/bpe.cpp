// BPE begins with the bytes of a word, one token each. It merges the neighbours whose merge comes first in
// the file's list, the leftmost on a tie, until no merge fits. A byte without a token is dropped.
//
// Tokens and merges are written in an alphabet of 256 visible characters, one for each byte. Under rules with
// kCharacters they are written as they read, with marks for spaces: then a word is its characters, and one
// without a token becomes its byte pieces, or the unknown token. (A byte-level file may name an unknown token
// too, but its tokenizer.json does not use it.)
#include <algorithm>
#include <array>

#include "text/tokenizer/cache.h"
#include "text/tokenizer/encoders.h"
#include "text/tokenizer/split.h"

namespace greta {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Printable characters of Latin-1 stand for themselves, and the other 68 bytes for U+0100 and on.
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

// Up to this many symbols are merged by a look through all pairs each time, more of them by a heap.
constexpr size_t kFewSymbols = 24;

struct Merge {
  uint64_t pair;          // ids: left << 32 | right
  uint32_t rank, joined;  // place in the list; id
};
constexpr uint64_t kNoPair = UINT64_MAX;  // its ids are beyond any vocabulary

// The merges by pair. The table has open addressing, is at most three quarters full, and has no longer runs
// than SlotTable.
class MergeTable {
 public:
  void reserve(uint64_t count) {
    uint64_t slots = 16;
    while (slots * 3 < count * 4) slots *= 2;
    slots_.assign(slots, {kNoPair, 0, 0});
  }
  const Merge* find(uint32_t left, uint32_t right) const {
    const uint64_t pair = uint64_t(left) << 32 | right, hash = hash_pair(left, right);
    for (uint32_t i = 0; i <= SlotTable::kMaxProbes; ++i) {
      const Merge& slot = slots_[(hash + i) & (slots_.size() - 1)];
      if (slot.pair == pair) return &slot;
      if (slot.pair == kNoPair) return nullptr;
    }
    return nullptr;
  }
  // The slot for a pair that is not there yet; null if there is none nearby.
  Merge* place(uint32_t left, uint32_t right) {
    const uint64_t hash = hash_pair(left, right);
    for (uint32_t i = 0; i <= SlotTable::kMaxProbes; ++i) {
      Merge& slot = slots_[(hash + i) & (slots_.size() - 1)];
      if (slot.pair == kNoPair) return &slot;
    }
    return nullptr;
  }

 private:
  std::vector<Merge> slots_;
};

struct Symbol {
  int32_t id;              // kNoToken if it has no token
  uint32_t start;          // in the word
  uint32_t before, after;  // indices of neighbours, kNone at the ends
};

struct Pair {
  uint32_t rank, left, joined;  // the right symbol is the one after `left`
  uint64_t pair;                // both ids; others mean that the pair is stale
  bool operator<(
      const Pair& other) const {  // the heap's top is the greatest: the lowest rank, then the leftmost
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

struct Scratch {
  std::string text;
  std::vector<Symbol> symbols;
  std::vector<Pair> pairs;
  EncodeNotes& notes;
};

class BpeEncoder : public TextEncoder {
 public:
  BpeEncoder(const Vocab& vocab, int32_t unknown, const SplitRule& rule) : vocab_(vocab), rule_(rule) {
    substitute_.unknown = unknown;
  }
  Status open(const Gguf& gguf, const Log& log);
  Status encode(std::string_view text, std::vector<int32_t>* out, EncodeNotes* notes) const override;

 private:
  Status read_merge(std::string_view text, uint32_t rank, bool* taken, std::string* joined);
  void add_pair(Scratch& scratch, uint32_t left) const;
  void encode_bytes(std::string_view word, Scratch& scratch, std::vector<int32_t>* out,
                    EncodeNotes* notes) const;
  void encode_characters(std::string_view word, Scratch& scratch, std::vector<int32_t>* out,
                         EncodeNotes* notes) const;
  void merge_few(Scratch& scratch) const;
  void merge_many(Scratch& scratch) const;
  void merge_all(Scratch& scratch) const;

  const Vocab& vocab_;
  const SplitRule& rule_;
  Substitute substitute_;  // its bytes are those of the alphabet, unless the rule has kCharacters
  MergeTable merges_;
  bool words_apart_ = false;
};

Status BpeEncoder::open(const Gguf& gguf, const Log& log) {
  if (rule_.has(kCharacters)) {
    GRETA_TRY(find_byte_pieces(vocab_, substitute_.bytes));
    words_apart_ = has_words_apart(vocab_);
  } else {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      char text[4];
      substitute_.bytes[byte] = vocab_.find_plain({text, encode_utf8(kByteToCode[byte], text)});
    }
  }
  StringArray texts;
  GRETA_TRY(gguf.require("tokenizer.ggml.merges"));
  GRETA_TRY(gguf.get_strings("tokenizer.ggml.merges", &texts));
  if (texts.count > kMaxMerges)
    return fail(Code::File, "tokenizer.ggml.merges has %llu merges, expected at most %llu",
                (unsigned long long)texts.count, (unsigned long long)kMaxMerges);
  merges_.reserve(texts.count);
  uint32_t rank = 0, taken_count = 0;
  std::string joined;
  for (const std::string_view text : texts) {
    bool taken = false;
    GRETA_TRY(read_merge(text, rank++, &taken, &joined));
    taken_count += taken;
  }
  if (taken_count < texts.count)
    log(LogLevel::Warning,
        "%s: %llu of %llu merges name pieces that are no tokens, or repeat an earlier one; skipped",
        gguf.name(), (unsigned long long)(texts.count - taken_count), (unsigned long long)texts.count);
  return {};
}

// A merge is "left right". The alphabet has no space, so the first one parts them.
Status BpeEncoder::read_merge(std::string_view text, uint32_t rank, bool* taken, std::string* joined) {
  const size_t space = text.find(' ', 1);
  if (space == text.npos || space + 1 == text.size()) return {};
  joined->assign(text, 0, space).append(text, space + 1);
  const int32_t left = vocab_.find_plain(text.substr(0, space));
  const int32_t right = left < 0 ? kNoToken : vocab_.find_plain(text.substr(space + 1));
  const int32_t both = right < 0 ? kNoToken : vocab_.find_plain(*joined);
  if (both < 0 || merges_.find(uint32_t(left), uint32_t(right))) return {};
  Merge* slot = merges_.place(uint32_t(left), uint32_t(right));
  if (!slot)
    return fail(Code::File, "merge %s: more than %u merges share its place in a hash table",
                Quoted(text).c_str(), SlotTable::kMaxProbes);
  *slot = {uint64_t(left) << 32 | uint32_t(right), rank, uint32_t(both)};
  *taken = true;
  return {};
}

// For words of common length: the ranks of all pairs lie side by side, and a look at each finds the least.
void BpeEncoder::merge_few(Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  uint32_t ranks[kFewSymbols], joined[kFewSymbols];  // of the pair of symbol i and the next
  size_t count = symbols.size();
  const auto look_up = [&](size_t i) {
    const int32_t a = symbols[i].id, b = symbols[i + 1].id;
    const Merge* merge = a < 0 || b < 0 ? nullptr : merges_.find(uint32_t(a), uint32_t(b));
    ranks[i] = merge ? merge->rank : kNone;
    joined[i] = merge ? merge->joined : 0;
    ++scratch.notes.steps;
  };
  for (size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    scratch.notes.steps += count;
    const size_t best = size_t(std::min_element(ranks, ranks + count - 1) - ranks);
    if (ranks[best] == kNone) break;
    symbols[best].id = int32_t(joined[best]);
    symbols.erase(symbols.begin() + ptrdiff_t(best) + 1);
    std::copy(ranks + best + 1, ranks + count - 1, ranks + best);
    std::copy(joined + best + 1, joined + count - 1, joined + best);
    --count;
    if (best + 1 < count) look_up(best);
    if (best > 0) look_up(best - 1);
  }
  for (size_t i = 0; i < count; ++i) symbols[i].after = i + 1 < count ? uint32_t(i + 1) : kNone;
}

void BpeEncoder::add_pair(Scratch& scratch, uint32_t left) const {
  if (left == kNone || scratch.symbols[left].after == kNone) return;
  const int32_t a = scratch.symbols[left].id, b = scratch.symbols[scratch.symbols[left].after].id;
  if (a < 0 || b < 0) return;
  ++scratch.notes.steps;
  const Merge* merge = merges_.find(uint32_t(a), uint32_t(b));
  if (!merge) return;
  scratch.pairs.push_back({merge->rank, left, merge->joined, merge->pair});
  std::push_heap(scratch.pairs.begin(), scratch.pairs.end());
}

void BpeEncoder::merge_many(Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  scratch.pairs.clear();
  for (uint32_t i = 0; i + 1 < symbols.size(); ++i) add_pair(scratch, i);
  while (!scratch.pairs.empty() && !scratch.notes.stopped()) {
    ++scratch.notes.steps;
    std::pop_heap(scratch.pairs.begin(), scratch.pairs.end());
    const Pair best = scratch.pairs.back();
    scratch.pairs.pop_back();
    Symbol& left = symbols[best.left];
    if (left.id != int32_t(best.pair >> 32) || left.after == kNone) continue;  // merged meanwhile
    Symbol& right = symbols[left.after];
    if (right.id != int32_t(uint32_t(best.pair))) continue;
    left.id = int32_t(best.joined);
    right.id = kNoToken;  // it is no longer linked
    left.after = right.after;
    if (left.after != kNone) symbols[left.after].before = best.left;
    add_pair(scratch, left.before);
    add_pair(scratch, best.left);
  }
}

void BpeEncoder::merge_all(Scratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  if (symbols.size() <= kFewSymbols) return merge_few(scratch);
  for (uint32_t i = 0; i < symbols.size(); ++i) {
    symbols[i].before = i ? i - 1 : kNone;
    symbols[i].after = i + 1 < symbols.size() ? i + 1 : kNone;
  }
  merge_many(scratch);
}

void BpeEncoder::encode_bytes(std::string_view word, Scratch& scratch, std::vector<int32_t>* out,
                              EncodeNotes* notes) const {
  if (rule_.has(kWholeWords) && word.size() <= vocab_.longest_bytes()) {
    scratch.text.clear();
    for (const char c : word) append_utf8(kByteToCode[uint8_t(c)], &scratch.text);
    const int32_t id = vocab_.find_plain(scratch.text);
    if (id != kNoToken) return out->push_back(id);
  }
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  for (uint32_t i = 0; i < word.size(); ++i) {
    const int32_t id = substitute_.bytes[uint8_t(word[i])];
    if (id == kNoToken)
      notes->leave_out(word.substr(i, 1));
    else
      symbols.push_back({id, i, kNone, kNone});
  }
  if (symbols.empty()) return;
  merge_all(scratch);
  for (uint32_t i = 0; i != kNone; i = symbols[i].after) out->push_back(symbols[i].id);
}

void BpeEncoder::encode_characters(std::string_view word, Scratch& scratch, std::vector<int32_t>* out,
                                   EncodeNotes* notes) const {
  mark_spaces(word, &scratch.text);
  const std::string_view text = scratch.text;
  const bool whole = rule_.has(kWholeWords) || (rule_.has(kNewlineRuns) && text[0] == '\n');
  const int32_t id = whole && text.size() <= vocab_.longest_bytes() ? vocab_.find_plain(text) : kNoToken;
  if (id != kNoToken) return out->push_back(id);
  std::vector<Symbol>& symbols = scratch.symbols;
  symbols.clear();
  for (const auto& [code, bytes, at] : CodePoints(text)) {
    const std::string_view character = text.substr(at, bytes);
    const int32_t alone = vocab_.find_plain(character);
    if (alone == kNoToken && !substitute_.has(character))
      notes->leave_out(character);
    else
      symbols.push_back({alone, uint32_t(at), kNone, kNone});
  }
  if (symbols.empty()) return;
  merge_all(scratch);
  for (uint32_t i = 0; i != kNone; i = symbols[i].after) {
    if (symbols[i].id != kNoToken) {
      out->push_back(symbols[i].id);
    } else {
      const uint32_t bytes = decode_utf8(text, symbols[i].start).bytes;
      substitute_.append(text.substr(symbols[i].start, bytes), out, notes);
    }
  }
}

Status BpeEncoder::encode(std::string_view text, std::vector<int32_t>* out, EncodeNotes* notes) const {
  const size_t first = out->size();
  std::vector<uint32_t> ends;
  split_words(rule_, text, &ends);
  Scratch scratch{{}, {}, {}, *notes};
  WordCache cache(text.size());
  size_t start = 0;
  for (const uint32_t end : ends) {
    while (start < end && !notes->stopped()) {
      const std::string_view piece = text.substr(start, end - start);
      const std::string_view word = words_apart_ ? piece.substr(0, marked_word_end(piece, 0)) : piece;
      cache.append(word, out, [&] {
        rule_.has(kCharacters) ? encode_characters(word, scratch, out, notes)
                               : encode_bytes(word, scratch, out, notes);
      });
      start += word.size();
    }
  }
  if (rule_.has(kCharacters)) join_unknown(substitute_.unknown, first, out);
  return {};
}

}  // namespace

void append_bpe_bytes(std::string_view text, std::string* out) {
  for (const auto& [code, bytes, at] : CodePoints(text)) {
    const int byte = code < kCodes ? kCodeToByte[code] : -1;
    if (byte >= 0)
      out->push_back(char(byte));
    else
      out->append(text, at, bytes);  // what is outside the alphabet stands for itself
  }
}

Status make_bpe_encoder(const Gguf& gguf, const Vocab& vocab, int32_t unknown, const SplitRule& rule,
                        const Log& log, std::unique_ptr<TextEncoder>* out) {
  auto encoder = std::make_unique<BpeEncoder>(vocab, unknown, rule);
  GRETA_TRY(encoder->open(gguf, log));
  *out = std::move(encoder);
  return {};
}

}  // namespace greta
