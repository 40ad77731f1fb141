// A checksum does not depend on how the bytes are cut into pieces, and any small change changes it.
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <set>

#include "platform/platform.h"

using namespace greta;

namespace {

uint64_t sum_of(const std::string& bytes, size_t piece = SIZE_MAX) {
  Checksum sum;
  for (size_t at = 0; at < bytes.size();) {
    const size_t count = std::min(piece, bytes.size() - at);
    sum.add(bytes.data() + at, count);
    at += count;
  }
  return sum.value();
}

std::string some_bytes(size_t count) {
  std::mt19937 random(1);
  std::string bytes(count, '\0');
  for (char& c : bytes) c = char(random());
  return bytes;
}

}  // namespace

TEST_CASE("checksum: the cut does not matter", "[platform]") {
  for (const size_t length : {0, 1, 31, 32, 33, 64, 1000}) {
    const std::string bytes = some_bytes(length);
    for (const size_t piece : {1, 3, 8, 31, 32, 33, 100}) CHECK(sum_of(bytes, piece) == sum_of(bytes));
  }
}

TEST_CASE("checksum: every small change gives another one", "[platform]") {
  const std::string bytes = some_bytes(200), zeros(200, '\0');
  for (const std::string& base : {bytes, zeros}) {
    std::set<uint64_t> sums = {sum_of(base)};
    size_t changes = 1;
    for (size_t i = 0; i < base.size(); ++i)
      for (int bit = 0; bit < 8; ++bit, ++changes) {
        std::string changed = base;
        changed[i] = char(changed[i] ^ 1 << bit);
        sums.insert(sum_of(changed));
      }
    for (size_t length = 0; length < base.size(); ++length, ++changes)
      sums.insert(sum_of(base.substr(0, length)));
    CHECK(sums.size() == changes);
  }
  std::string exchanged = bytes;
  std::swap_ranges(exchanged.begin(), exchanged.begin() + 32, exchanged.begin() + 32);
  CHECK(sum_of(exchanged) != sum_of(bytes));
}
