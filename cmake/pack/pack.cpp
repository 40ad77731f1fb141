// The tokens are the cheapest path through the code that was found: a node for each place, an edge for each
// token. What a token costs comes from the codes of the round before.
#include "pack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "platform/files/checksum.h"

namespace greta::packed {

namespace {

// One round more and twice as many tries take twice the time, and save one percent of the size.
constexpr uint32_t kRounds = 2;
constexpr uint32_t kTries = 24;     // earlier places that are compared
constexpr uint32_t kLong = 192;     // a match of this length is taken as it is
constexpr uint32_t kHashBits = 16;  // of three bytes

struct Token {
  uint32_t length = 1;    // 1: a byte
  uint32_t distance = 0;  // 0: a byte
};

struct Last {
  uint32_t distances[kRepeats] = {1, 4, 8};
  // The index of a distance, kRepeats if it is none of them.
  uint32_t find(uint32_t distance) const {
    return uint32_t(std::find(distances, distances + kRepeats, distance) - distances);
  }
  void use(uint32_t distance) {
    for (uint32_t i = std::min(find(distance), kRepeats - 1); i; --i) distances[i] = distances[i - 1];
    distances[0] = distance;
  }
};

// A symbol with its extra bits.
struct Coded {
  uint32_t symbol = 0, extra_bits = 0, extra = 0;
};

Coded coded(uint32_t first, uint32_t value) {
  if (value < 4) return {first + value, 0, 0};
  const uint32_t extra_bits = uint32_t(std::bit_width(value)) - 2;
  return {first + 2 * (extra_bits + 1) + (value >> extra_bits & 1), extra_bits,
          value & ((1u << extra_bits) - 1)};
}

Coded coded_length(uint32_t length) { return coded(kLengths, length - kShortest); }

Coded coded_distance(uint32_t distance, const Last& last) {
  const uint32_t repeat = last.find(distance);
  if (repeat < kRepeats) return {repeat, 0, 0};
  if (distance % 4 == 0) return coded(kWordDistances, distance / 4 - 1);
  return coded(kDistances, distance - 1);
}

// The lengths of an alphabet's codes.
struct Codes {
  uint64_t counts[kTokens] = {};
  uint8_t lengths[kTokens] = {};
  uint16_t codes[kTokens] = {};

  void make(uint32_t symbols);
  float price(uint32_t symbol) const { return lengths[symbol] ? lengths[symbol] : kLongestCode + 2; }
};

// Huffman's lengths; where one is too long, rare symbols count for more.
void Codes::make(uint32_t symbols) {
  std::vector<uint64_t> weight(counts, counts + symbols);
  for (bool fits = false; !fits;) {
    std::vector<std::pair<uint64_t, std::vector<uint32_t>>> trees;
    memset(lengths, 0, sizeof lengths);
    for (uint32_t i = 0; i < symbols; ++i)
      if (weight[i]) trees.push_back({weight[i], {i}});
    if (trees.size() == 1) lengths[trees[0].second[0]] = 1;
    const auto heavier = [](const auto& a, const auto& b) { return a > b; };
    std::make_heap(trees.begin(), trees.end(), heavier);
    while (trees.size() > 1) {
      std::pop_heap(trees.begin(), trees.end(), heavier);
      auto least = std::move(trees.back());
      trees.pop_back();
      std::pop_heap(trees.begin(), trees.end(), heavier);
      auto& joined = trees.back();
      joined.first += least.first;
      joined.second.insert(joined.second.end(), least.second.begin(), least.second.end());
      for (const uint32_t symbol : joined.second) ++lengths[symbol];
      std::push_heap(trees.begin(), trees.end(), heavier);
    }
    fits = *std::max_element(lengths, lengths + symbols) <= kLongestCode;
    for (uint64_t& each : weight) each = each ? each / 2 + 1 : 0;
  }
  uint32_t code = 0;
  for (uint32_t length = 1; length <= kLongestCode; ++length, code <<= 1)
    for (uint32_t i = 0; i < symbols; ++i)
      if (lengths[i] == length) codes[i] = uint16_t(code++);
}

// Earlier places with the same three bytes, the latest first.
class Places {
 public:
  explicit Places(const Bytes& data) : data_(data), first_(1 << kHashBits, -1), next_(data.size(), -1) {}
  void add(uint32_t at) {
    if (at + 3 > data_.size()) return;
    next_[at] = first_[hash(at)];
    first_[hash(at)] = int32_t(at);
  }
  uint32_t length(uint32_t at, uint32_t from) const {
    const uint32_t most = std::min(uint32_t(data_.size()) - at, kLongest);
    uint32_t same = 0;
    while (same < most && data_[at + same] == data_[from + same]) ++same;
    return same;
  }
  // Calls found(length, distance) for each place that gives a longer match than those nearer.
  template <class Found>
  void find(uint32_t at, Found found) const {
    if (at + 3 > data_.size()) return;
    uint32_t best = 2, tries = kTries;
    for (int32_t from = first_[hash(at)]; from >= 0 && tries; from = next_[from], --tries) {
      const uint32_t same = length(at, uint32_t(from));
      if (same <= best) continue;
      best = same;
      found(same, at - uint32_t(from));
    }
  }

 private:
  uint32_t hash(uint32_t at) const {
    return (data_[at] | data_[at + 1] << 8 | uint32_t(data_[at + 2]) << 16) * 2654435761u >> (32 - kHashBits);
  }
  const Bytes& data_;
  std::vector<int32_t> first_, next_;
};

using AllCodes = Codes[kAlphabets];

std::vector<Token> shortest_path(const Bytes& data, const AllCodes& codes) {
  struct Node {
    float price = INFINITY;
    Token token;
    Last last;
  };
  const uint32_t size = uint32_t(data.size());
  std::vector<Node> nodes(size + 1);
  nodes[0].price = 0;
  Places places(data);
  for (uint32_t at = 0, skip_to = 0; at < size; places.add(at++)) {
    const Node node = nodes[at];
    if (at < skip_to) continue;
    const Codes& here = codes[at % 4];
    const auto offer = [&](uint32_t length, uint32_t distance, float price) {
      Node& to = nodes[at + length];
      if (price >= to.price) return;
      to.price = price;
      to.token = {length, distance};
      to.last = node.last;
      if (distance) to.last.use(distance);
    };
    const auto match = [&](uint32_t longest, uint32_t distance) {
      const Coded far = coded_distance(distance, node.last);
      const float price = node.price + codes[4].price(far.symbol) + float(far.extra_bits);
      const uint32_t shortest = longest >= kLong ? longest : kShortest;
      if (longest >= kLong) skip_to = std::max(skip_to, at + longest);
      for (uint32_t length = shortest; length <= longest; ++length) {
        const Coded long_ = coded_length(length);
        offer(length, distance, price + here.price(long_.symbol) + float(long_.extra_bits));
      }
    };
    offer(1, 0, node.price + here.price(data[at]));
    for (const uint32_t distance : node.last.distances)
      if (distance <= at) match(places.length(at, at - distance), distance);
    places.find(at, match);
  }
  std::vector<Token> path;
  for (uint32_t at = size; at; at -= path.back().length) path.push_back(nodes[at].token);
  std::reverse(path.begin(), path.end());
  return path;
}

// Calls sink(alphabet, coded) for each symbol of the tokens.
template <class Sink>
void each_symbol(const Bytes& data, const std::vector<Token>& tokens, Sink sink) {
  Last last;
  uint32_t at = 0;
  for (const Token& token : tokens) {
    if (!token.distance) {
      sink(at % 4, Coded{data[at]});
    } else {
      sink(at % 4, coded_length(token.length));
      sink(4, coded_distance(token.distance, last));
      last.use(token.distance);
    }
    at += token.length;
  }
}

class BitWriter {
 public:
  void put(uint32_t value, uint32_t count) {
    while (count--) {
      if (used_ % 8 == 0) bytes.push_back(0);
      bytes.back() |= uint8_t((value >> count & 1) << (7 - used_++ % 8));
    }
  }
  Bytes bytes;

 private:
  uint64_t used_ = 0;
};

void write_lengths(const Codes& codes, uint32_t symbols, BitWriter& bits) {
  for (uint32_t i = 0; i < symbols;) {
    uint32_t unused = 0;
    while (i + unused < symbols && !codes.lengths[i + unused]) ++unused;
    if (unused >= kManyLeast) {
      const uint32_t run = std::min(unused - kManyLeast, (1u << kManyBits) - 1);
      bits.put(kManyUnused, 4), bits.put(run, kManyBits);
      i += kManyLeast + run;
    } else if (unused >= kFewLeast) {
      const uint32_t run = std::min(unused - kFewLeast, (1u << kFewBits) - 1);
      bits.put(kFewUnused, 4), bits.put(run, kFewBits);
      i += kFewLeast + run;
    } else {
      bits.put(codes.lengths[i++], 4);
    }
  }
}

}  // namespace

Bytes pack(const Bytes& data) {
  AllCodes codes;
  for (uint32_t a = 0; a < kAlphabets; ++a) memset(codes[a].lengths, a < 4 ? 7 : 5, sizeof codes[a].lengths);
  std::vector<Token> tokens;
  for (uint32_t round = 0; round < kRounds; ++round) {
    tokens = shortest_path(data, codes);
    for (Codes& each : codes) memset(each.counts, 0, sizeof each.counts);
    each_symbol(data, tokens, [&](uint32_t a, const Coded& coded) { ++codes[a].counts[coded.symbol]; });
    for (uint32_t a = 0; a < kAlphabets; ++a) codes[a].make(kSymbols[a]);
  }
  BitWriter bits;
  const uint32_t header[2] = {uint32_t(data.size()), uint32_t(checksum(data.data(), data.size()))};
  for (const uint32_t word : header)
    for (uint32_t i = 0; i < 4; ++i) bits.put(word >> 8 * i & 255, 8);
  for (uint32_t a = 0; a < kAlphabets; ++a) write_lengths(codes[a], kSymbols[a], bits);
  each_symbol(data, tokens, [&](uint32_t a, const Coded& coded) {
    bits.put(codes[a].codes[coded.symbol], codes[a].lengths[coded.symbol]);
    bits.put(coded.extra, coded.extra_bits);
  });
  return bits.bytes;
}

}  // namespace greta::packed
