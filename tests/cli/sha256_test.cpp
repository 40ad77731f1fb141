// SHA-256 against the vectors of FIPS 180-4, and cut in any way.
#include "../../tools/cli/sha256.h"

#include <catch2/catch_test_macros.hpp>

#include "../../tools/cli/sha256.cpp"

using greta::cli::Sha256;

static std::string hash_of(const std::string& text, size_t piece) {
  Sha256 hash;
  for (size_t at = 0; at < text.size(); at += piece) {
    const std::string some = text.substr(at, piece);
    hash.add(some.data(), some.size());
  }
  return hash.finish();
}

TEST_CASE("sha256: known sums", "[cli]") {
  const struct {
    std::string text;
    const char* sum;
  } cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {std::string(1000000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& [text, sum] : cases)
    for (const size_t piece : {size_t(1), size_t(7), size_t(64), size_t(100), size_t(1) << 21})
      CHECK(hash_of(text, piece) == sum);
}
