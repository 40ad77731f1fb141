#include "platform/files/packed.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "platform/files/checksum.h"

namespace greta {

namespace packed {

namespace {

// Behind the last byte come zeros, which used_up() reports.
class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  // Holds at least 56 bits after it.
  void refill() {
    if (end_ - at_ >= 8) {
      uint64_t next;
      memcpy(&next, at_, 8);
      bits_ |= __builtin_bswap64(next) >> held_;
      at_ += (63 - held_) / 8;
      held_ |= 56;
      return;
    }
    for (; held_ <= 56; held_ += 8) {
      if (at_ < end_)
        bits_ |= uint64_t(*at_++) << (56 - held_);
      else
        ++missing_;
    }
  }
  uint32_t peek(uint32_t count) const { return uint32_t(bits_ >> (64 - count)); }  // 1 to 32 bits
  void skip(uint32_t count) { bits_ <<= count, held_ -= count; }
  uint32_t take(uint32_t count) {
    const uint32_t value = uint32_t(bits_ >> 32 >> (32 - count));
    skip(count);
    return value;
  }
  // Less than a byte is left, and nothing in it.
  bool used_up() const { return at_ == end_ && held_ / 8 == missing_ && !bits_; }

 private:
  const uint8_t *at_, *end_;
  uint64_t bits_ = 0;  // those held are the highest
  uint32_t held_ = 0, missing_ = 0;
};

// What each sequence of kLongestCode bits begins with.
struct Alphabet {
  struct Entry {
    uint16_t symbol;
    uint16_t bits;  // 0: no code begins so
  };
  Entry entries[1 << kLongestCode] = {};

  bool read(BitReader& bits, uint32_t symbols);
  // Returns a symbol; with `ok` false any.
  uint32_t next(BitReader& bits, bool& ok) const {
    const Entry entry = entries[bits.peek(kLongestCode)];
    bits.skip(entry.bits);
    ok &= entry.bits != 0;
    return entry.symbol;
  }
};

bool Alphabet::read(BitReader& bits, uint32_t symbols) {
  uint8_t lengths[kTokens] = {};
  for (uint32_t symbol = 0; symbol < symbols;) {
    bits.refill();
    const uint32_t word = bits.take(4);
    if (word <= kLongestCode)
      lengths[symbol++] = uint8_t(word);
    else if (word == kFewUnused)
      symbol += kFewLeast + bits.take(kFewBits);
    else if (word == kManyUnused)
      symbol += kManyLeast + bits.take(kManyBits);
    else
      return false;
  }
  Entry* to = entries;
  for (uint32_t length = 1; length <= kLongestCode; ++length) {
    const uint32_t span = 1 << (kLongestCode - length);
    for (uint32_t symbol = 0; symbol < symbols; ++symbol) {
      if (lengths[symbol] != length) continue;
      if (uint32_t(std::end(entries) - to) < span) return false;
      std::fill_n(to, span, Entry{uint16_t(symbol), uint16_t(length)});
      to += span;
    }
  }
  return true;
}

// The number that a symbol and its extra bits mean.
uint32_t value_of(uint32_t symbol, BitReader& bits) {
  if (symbol < 4) return symbol;
  const uint32_t extra = symbol / 2 - 1;
  return (2 + symbol % 2) << extra | bits.take(extra);
}

// The distances of the last matches, the latest first.
struct Distances {
  uint32_t last[kRepeats] = {1, 4, 8};

  uint32_t next(const Alphabet& alphabet, BitReader& bits, bool& ok) {
    bits.refill();
    const uint32_t symbol = alphabet.next(bits, ok);
    uint32_t distance, from = kRepeats - 1;
    if (symbol < kRepeats)
      distance = last[from = symbol];
    else if (symbol < kDistances)
      distance = 4 * (value_of(symbol - kWordDistances, bits) + 1);
    else
      distance = value_of(symbol - kDistances, bits) + 1;
    for (; from; --from) last[from] = last[from - 1];
    return last[0] = distance;
  }
};

bool read_tokens(BitReader& bits, std::span<uint8_t> out) {
  const auto alphabets = std::make_unique<Alphabet[]>(kAlphabets);
  for (uint32_t i = 0; i < kAlphabets; ++i)
    if (!alphabets[i].read(bits, kSymbols[i])) return false;
  Distances distances;
  bool ok = true;
  for (size_t at = 0; at < out.size() && ok;) {
    bits.refill();
    const uint32_t symbol = alphabets[at % 4].next(bits, ok);
    if (symbol < kLengths) {
      out[at++] = uint8_t(symbol);
      continue;
    }
    const uint32_t length = kShortest + value_of(symbol - kLengths, bits);
    const uint32_t distance = distances.next(alphabets[4], bits, ok);
    if (distance > at || length > out.size() - at) return false;
    uint8_t* to = &out[at];
    const uint8_t* from = to - distance;
    if (distance >= length)
      memcpy(to, from, length);
    else
      for (uint32_t i = 0; i < length; ++i) to[i] = from[i];
    at += length;
  }
  return ok && bits.used_up();
}

}  // namespace

}  // namespace packed

Status unpack(std::span<const uint8_t> block, std::vector<uint8_t>* out) {
  using namespace packed;
  uint32_t header[2] = {};  // bytes, checksum
  if (block.size() >= kHeaderBytes) memcpy(header, block.data(), kHeaderBytes);
  bool whole = header[0] && header[0] <= kMaxBytes;
  if (whole) {
    out->resize(header[0]);
    BitReader bits(block.subspan(kHeaderBytes));
    whole = read_tokens(bits, *out) && uint32_t(checksum(out->data(), out->size())) == header[1];
  }
  if (!whole) return fail(Code::Unsupported, "its %zu bytes of packed code are damaged", block.size());
  return {};
}

}  // namespace greta
