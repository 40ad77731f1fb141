// Texts and tokens go into memory of the caller, whatever room it says to have.
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "support/api_objects.h"
#include "support/gguf_writer.h"

using namespace greta::test;

// CVE-2025-52566, CVE-2025-49847.
TEST_CASE("api: tokens and texts fill the room that there is, and no more", "[api]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const greta_tokenizer* const tokenizer = greta_model_tokenizer(o.model);
  const char* const text = "1t2t3t4t5t";
  size_t all = 0;
  REQUIRE(greta_tokenizer_encode(tokenizer, text, strlen(text), 0, nullptr, 0, &all) == GRETA_OK);
  REQUIRE(all >= 3);
  std::vector<int32_t> tokens(all + 4);
  for (size_t room = 0; room <= all; ++room) {
    std::fill(tokens.begin(), tokens.end(), -7);
    size_t count = 0;
    const greta_status status =
        greta_tokenizer_encode(tokenizer, text, strlen(text), 0, tokens.data(), room, &count);
    INFO("room for " << room << " of " << all << " tokens: " << greta_error_text());
    CHECK(status == GRETA_OK);
    CHECK(count == all);
    CHECK(std::all_of(tokens.begin() + ptrdiff_t(room), tokens.end(), [](int32_t t) { return t == -7; }));
  }
  // Room that a number of 32 bits, or a signed one, would not hold.
  for (const size_t room : {size_t(1) << 31, (size_t(1) << 32) + 1, ~size_t(0)}) {
    size_t count = 0;
    CHECK(greta_tokenizer_encode(tokenizer, text, strlen(text), 0, tokens.data(), room, &count) == GRETA_OK);
    CHECK(count == all);
  }
  size_t bytes = 0;
  REQUIRE(greta_tokenizer_decode(tokenizer, tokens.data(), all, nullptr, 0, &bytes) == GRETA_OK);
  for (size_t room = 0; room <= bytes + 1; ++room) {
    std::string out(bytes + 4, '#');
    size_t count = 0;
    CHECK(greta_tokenizer_decode(tokenizer, tokens.data(), all, out.data(), room, &count) == GRETA_OK);
    CHECK(count == bytes);
    CHECK(out.find_first_not_of('#', room) == out.npos);
  }
}

TEST_CASE("api: a callback ends the encoding of a long text, and nothing is written", "[api]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);
  const greta_tokenizer* const tokenizer = greta_model_tokenizer(o.model);
  const std::string text(1 << 20, 't');
  int32_t first = -7;
  size_t count = 77;
  int calls = 0;
  const auto stop = [](void* user) { return int(++*static_cast<int*>(user) == 3); };
  CHECK(greta_tokenizer_encode_until(tokenizer, text.data(), text.size(), 0, &first, 1, &count, stop,
                                     &calls) == GRETA_ERROR_CANCELLED);
  CHECK(calls == 3);
  CHECK(first == -7);
  CHECK(count == 77);
  CHECK(greta_tokenizer_encode_until(tokenizer, "1t2t3t", 6, 0, nullptr, 0, &count, stop, &calls) ==
        GRETA_OK);
  CHECK(calls == 3);  // a short text asks nobody
  CHECK(count > 0);
}

TEST_CASE("api: tokens around gaps are those that the file names, or known texts", "[api]") {
  GgufWriter writer = bpe_vocabulary({"<|fim_prefix|>", "<fim_suffix>", "<|mine|>"}, {}, "gpt-2");
  writer.value("tokenizer.ggml.fim_mid_token_id", 258u).value("tokenizer.ggml.fim_pad_token_id", 4000u);
  const auto bytes = writer.file();
  auto source = sized<greta_source>();
  source.memory = bytes.data(), source.memory_bytes = bytes.size();
  greta_file* file = nullptr;
  greta_tokenizer* tokenizer = nullptr;
  REQUIRE(greta_file_open(&source, &file) == GRETA_OK);
  REQUIRE(greta_tokenizer_open(file, nullptr, nullptr, &tokenizer) == GRETA_OK);
  CHECK(greta_tokenizer_fill_token(tokenizer, GRETA_FILL_PREFIX) == 256);
  CHECK(greta_tokenizer_fill_token(tokenizer, GRETA_FILL_SUFFIX) == 257);
  CHECK(greta_tokenizer_fill_token(tokenizer, GRETA_FILL_MIDDLE) == 258);
  CHECK(greta_tokenizer_fill_token(tokenizer, GRETA_FILL_PAD) == -1);  // there is no such token
  CHECK(greta_tokenizer_fill_token(tokenizer, GRETA_FILL_FILE) == -1);
  char text[32];
  size_t length = 0;
  greta_token_kind kind = GRETA_TOKEN_UNDEFINED;
  REQUIRE(greta_tokenizer_token(tokenizer, 256, text, sizeof text, &length, &kind) == GRETA_OK);
  CHECK(std::string(text, length) == "<|fim_prefix|>");
  CHECK(kind == GRETA_TOKEN_CONTROL);
  greta_tokenizer_close(tokenizer);
  greta_file_close(file);
}
