#include "support/npz.h"

#include <cstring>
#include <fstream>
#include <iterator>

namespace greta::test {
namespace {

using Bytes = std::vector<uint8_t>;

// RFC 1951, one bit at a time.
class Inflate {
 public:
  explicit Inflate(const Bytes& from) : from_(from) {}

  bool run(Bytes* out) {
    for (bool last = false; !last;) {
      last = bits(1);
      const uint32_t kind = bits(2);
      if (kind == 0) {
        if (!stored(out)) return false;
      } else {
        Code literals, distances;
        if (kind == 1)
          fixed(&literals, &distances);
        else if (kind != 2 || !dynamic(&literals, &distances))
          return false;
        if (!block(literals, distances, out)) return false;
      }
      if (failed_) return false;
    }
    return true;
  }

 private:
  struct Code {
    uint16_t count[16] = {};
    std::vector<uint16_t> symbols;
  };

  uint32_t bits(uint32_t count) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i, ++at_) {
      if (at_ / 8 >= from_.size()) return failed_ = true, 0;
      value |= uint32_t(from_[at_ / 8] >> (at_ % 8) & 1) << i;
    }
    return value;
  }

  static Code make(const std::vector<uint8_t>& lengths) {
    Code code;
    for (const uint8_t length : lengths) ++code.count[length];
    code.count[0] = 0;
    for (uint32_t length = 1; length < 16; ++length)
      for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
        if (lengths[symbol] == length) code.symbols.push_back(uint16_t(symbol));
    return code;
  }

  uint32_t symbol(const Code& code) {
    uint32_t value = 0, first = 0, index = 0;
    for (uint32_t length = 1; length < 16 && !failed_; ++length) {
      value |= bits(1);
      if (value < first + code.count[length]) return code.symbols[index + value - first];
      index += code.count[length];
      first = (first + code.count[length]) << 1;
      value <<= 1;
    }
    failed_ = true;
    return 0;
  }

  bool stored(Bytes* out) {
    at_ = (at_ + 7) / 8 * 8;
    const uint32_t length = bits(16);
    bits(16);
    for (uint32_t i = 0; i < length && !failed_; ++i) out->push_back(uint8_t(bits(8)));
    return !failed_;
  }

  static void fixed(Code* literals, Code* distances) {
    std::vector<uint8_t> lengths(288, 8);
    for (int i = 144; i < 256; ++i) lengths[size_t(i)] = 9;
    for (int i = 256; i < 280; ++i) lengths[size_t(i)] = 7;
    *literals = make(lengths);
    *distances = make(std::vector<uint8_t>(30, 5));
  }

  bool dynamic(Code* literals, Code* distances) {
    static const uint8_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const uint32_t literal_count = bits(5) + 257, distance_count = bits(5) + 1, length_count = bits(4) + 4;
    std::vector<uint8_t> meta(19);
    for (uint32_t i = 0; i < length_count; ++i) meta[kOrder[i]] = uint8_t(bits(3));
    const Code lengths_code = make(meta);
    std::vector<uint8_t> lengths;
    while (lengths.size() < literal_count + distance_count && !failed_) {
      const uint32_t s = symbol(lengths_code);
      if (s < 16)
        lengths.push_back(uint8_t(s));
      else if (s == 16 && lengths.empty())
        return false;
      else if (s == 16)
        lengths.insert(lengths.end(), bits(2) + 3, uint8_t(lengths.back()));
      else
        lengths.insert(lengths.end(), s == 17 ? bits(3) + 3 : bits(7) + 11, 0);
    }
    if (failed_ || lengths.size() != literal_count + distance_count) return false;
    const auto middle = lengths.begin() + int(literal_count);
    *literals = make({lengths.begin(), middle});
    *distances = make({middle, lengths.end()});
    return true;
  }

  bool block(const Code& literals, const Code& distances, Bytes* out) {
    static const uint16_t kLength[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                       31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint16_t kDistance[] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                         33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                         1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    while (!failed_) {
      const uint32_t s = symbol(literals);
      if (s == 256) return true;
      if (s < 256) {
        out->push_back(uint8_t(s));
        continue;
      }
      if (s > 285) return false;
      const uint32_t extra = s < 265 || s == 285 ? 0 : (s - 261) / 4;
      const uint32_t length = kLength[s - 257] + bits(extra), d = symbol(distances);
      if (d > 29) return false;
      const size_t distance = kDistance[d] + bits(d < 4 ? 0 : d / 2 - 1);
      if (failed_ || distance > out->size()) return false;
      for (uint32_t i = 0; i < length; ++i) out->push_back((*out)[out->size() - distance]);
    }
    return false;
  }

  const Bytes& from_;
  size_t at_ = 0;  // bits
  bool failed_ = false;
};

uint32_t little(const Bytes& from, size_t at, uint32_t count) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < count && at + i < from.size(); ++i) value |= uint32_t(from[at + i]) << (8 * i);
  return value;
}

// "{'descr': '<f4', 'fortran_order': False, 'shape': (16, 32), }" and then the values.
bool parse_npy(const Bytes& file, Array* out) {
  if (file.size() < 12 || memcmp(file.data(), "\x93NUMPY", 6)) return false;
  const size_t wide = file[6] > 1 ? 4 : 2, start = 8 + wide, length = little(file, 8, uint32_t(wide));
  if (length > file.size() - start) return false;
  const std::string header(file.begin() + int(start), file.begin() + int(start + length));
  const size_t descr = header.find("'descr': '"), shape = header.find("'shape': (");
  if (descr == std::string::npos || shape == std::string::npos || header.find("True") != std::string::npos)
    return false;
  out->type = header.substr(descr + 10, header.find('\'', descr + 10) - descr - 10);
  for (size_t at = shape + 10; at < header.size() && header[at] != ')';) {
    const size_t digits = header.find_first_of("0123456789)", at);
    if (digits == std::string::npos || header[digits] == ')') break;
    size_t used = 0;
    out->shape.push_back(std::stoull(header.substr(digits), &used));
    at = digits + used;
  }
  out->bytes.assign(file.begin() + int(start + length), file.end());
  return true;
}

}  // namespace

std::map<std::string, Array> read_npz(const std::string& path) {
  std::map<std::string, Array> arrays;
  std::ifstream stream(path, std::ios::binary);
  const Bytes zip{std::istreambuf_iterator<char>(stream), {}};
  size_t directory = zip.size() < 22 ? 0 : zip.size() - 22;
  while (directory > 0 && little(zip, directory, 4) != 0x06054b50) --directory;
  const uint32_t count = little(zip, directory + 10, 2);
  size_t entry = little(zip, directory + 16, 4);
  for (uint32_t i = 0; directory && i < count && entry + 46 <= zip.size(); ++i) {
    const uint32_t method = little(zip, entry + 10, 2), packed = little(zip, entry + 20, 4);
    const uint32_t name_bytes = little(zip, entry + 28, 2);
    const size_t local = little(zip, entry + 42, 4);
    const size_t data = local + 30 + little(zip, local + 26, 2) + little(zip, local + 28, 2);
    if (entry + 46 + name_bytes > zip.size() || data + packed > zip.size()) return {};
    std::string name(zip.begin() + int(entry + 46), zip.begin() + int(entry + 46 + name_bytes));
    Bytes file(zip.begin() + int(data), zip.begin() + int(data + packed));
    if (method == 8) {
      const Bytes deflated = std::move(file);
      file.clear();
      if (!Inflate(deflated).run(&file)) return {};
    }
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!parse_npy(file, &arrays[name])) return {};
    entry += 46 + name_bytes + little(zip, entry + 30, 2) + little(zip, entry + 32, 2);
  }
  return arrays;
}

}  // namespace greta::test
