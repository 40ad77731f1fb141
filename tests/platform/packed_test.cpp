// What is packed comes back, and a block that is not whole is refused.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <random>

#include "cmake/pack/pack.h"
#include "platform/platform.h"

using namespace greta;
using packed::Bytes;

namespace {

// Words like those of machine code: few operations, small numbers, and repetitions.
Bytes some_code(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes code;
  while (code.size() < bytes) {
    const size_t back = 4 * (random() % 200 + 1);
    if (random() % 3 && back <= code.size()) {
      for (uint32_t i = random() % 40; i; --i) code.push_back(code[code.size() - back]);
    } else {
      const uint8_t word[] = {uint8_t(random()), uint8_t(random() % 4), uint8_t(random() % 9), 0x7e};
      code.insert(code.end(), word, word + 4);
    }
  }
  code.resize(bytes);
  return code;
}

Status unpack_again(const Bytes& block) {
  Bytes out;
  return unpack(block, &out);
}

}  // namespace

TEST_CASE("packed: what is packed comes back", "[platform]") {
  std::vector<Bytes> codes = {Bytes(1, 7), Bytes(2, 0), Bytes(300, 9), Bytes(200000, 1)};
  for (const size_t bytes : {3, 4, 5, 100, 1001, 70000}) codes.push_back(some_code(bytes, uint32_t(bytes)));
  Bytes noise(5000);
  std::mt19937 random(5);
  for (uint8_t& byte : noise) byte = uint8_t(random());
  codes.push_back(noise);
  Bytes far = noise;  // a match that is further away than any other
  far.resize(200000);
  far.insert(far.end(), noise.begin(), noise.end());
  codes.push_back(far);
  for (const Bytes& code : codes) {
    const Bytes block = packed::pack(code);
    Bytes out;
    CAPTURE(code.size(), block.size());
    REQUIRE(unpack(block, &out).ok());
    CHECK(out == code);
  }
  CHECK(packed::pack(codes[3]).size() < 100);
  CHECK(packed::pack(noise).size() < noise.size() + 600);
  CHECK(packed::pack(far).size() < noise.size() + 1000);
}

// Codes of symbols that no token has may change, and the code comes back all the same.
TEST_CASE("packed: a block that was changed or cut is refused", "[platform]") {
  const Bytes code = some_code(600, 1), block = packed::pack(code);
  size_t refused = 0;
  for (size_t bit = 0; bit < 8 * block.size(); ++bit) {
    Bytes changed = block, out;
    changed[bit / 8] ^= uint8_t(1 << bit % 8);
    CAPTURE(bit);
    const Status status = unpack(changed, &out);
    CHECK((status.code == Code::Unsupported || out == code));
    refused += !status.ok();
  }
  CHECK(refused > 7 * block.size());
  for (size_t bytes = 0; bytes < block.size(); ++bytes) {
    CAPTURE(bytes);
    CHECK(unpack_again({block.begin(), block.begin() + ptrdiff_t(bytes)}).code == Code::Unsupported);
  }
  Bytes longer = block;
  longer.push_back(0);
  CHECK(unpack_again(longer).code == Code::Unsupported);
  CHECK(!strcmp(error_text(),
                ("its " + std::to_string(longer.size()) + " bytes of packed code are damaged").c_str()));
}

TEST_CASE("packed: any bytes are refused", "[platform]") {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    Bytes block = packed::pack(some_code(64, 2));
    for (uint32_t i = packed::kHeaderBytes + random() % 20; i < block.size(); ++i)
      if (random() % 4 == 0) block[i] = uint8_t(random());
    if (round % 3 == 0) memset(block.data(), 0xff, 3);  // as if there was much more code
    Bytes out;
    if (unpack(block, &out).ok()) CHECK(out == some_code(64, 2));  // by chance nothing was changed
  }
}
