// Encoding never fails, whatever bytes a text has: for every kind of vocabulary and every pre-tokenizer, with
// and without tokens for all bytes. One warning says what is left out.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <random>

#include "support/gguf_writer.h"
#include "support/test_data.h"
#include "text/tokenizer/split.h"
#include "text/tokenizer/tokenizer.h"

using namespace greta;
using test::GgufWriter;

namespace {

using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;
const std::string kMark = "\xE2\x96\x81";

struct Vocabulary {
  std::string file;
  Texts log;
  Gguf gguf;
  Tokenizer tokenizer;
  explicit Vocabulary(Source&& source) { open(std::move(source)); }
  explicit Vocabulary(const GgufWriter& writer) : file(writer.file()) {
    Source source;
    REQUIRE(source.open_memory(file.data(), file.size()).ok());
    open(std::move(source));
  }
  void open(Source&& source) {
    const auto write = [](void* user, uint32_t, const char* text) {
      static_cast<Texts*>(user)->push_back(text);
    };
    Status status = gguf.open(std::move(source));
    if (status.ok()) status = tokenizer.open(gguf, Log{write, &log});
    INFO(error_text());
    REQUIRE(status.ok());
    log.clear();
  }
};

std::string byte_piece(uint32_t byte) {
  char text[8];
  snprintf(text, sizeof text, "<0x%02X>", byte);
  return text;
}

// Which of the 256 bytes have a token.
enum class Bytes { All, Half, None };
constexpr Bytes kAllBytes[] = {Bytes::All, Bytes::Half, Bytes::None};
bool has(Bytes bytes, uint32_t byte) {
  return bytes == Bytes::All || (bytes == Bytes::Half && byte % 2 == 0);
}

// A byte-level vocabulary whose file names an unknown token, as StarCoder's do.
GgufWriter byte_level(const char* pre, Bytes bytes) {
  const Texts alphabet = test::byte_alphabet();
  Texts tokens = {"<|endoftext|>"}, merges;
  for (uint32_t byte = 0; byte < 256; ++byte)
    if (has(bytes, byte)) tokens.push_back(alphabet[byte]);
  for (const char* merge : {"t h", "th t", "2 4", "\xC2\xBC \xC3\x90"}) {
    if (bytes == Bytes::None) break;
    std::string joined = merge;
    joined.erase(joined.find(' '), 1);
    tokens.push_back(joined);
    merges.push_back(merge);
  }
  std::vector<int32_t> kinds(tokens.size(), 1);
  kinds[0] = 3;
  GgufWriter out;
  out.value("tokenizer.ggml.model", "gpt2").value("tokenizer.ggml.pre", pre);
  out.value("tokenizer.ggml.tokens", tokens).value("tokenizer.ggml.token_type", kinds);
  return out.value("tokenizer.ggml.merges", merges).value("tokenizer.ggml.unknown_token_id", 0u);
}

// A vocabulary of another kind.
GgufWriter pieces(const char* model, const char* pre, Bytes bytes, bool unknown) {
  Texts tokens = {"<pad>", "<unk>"};
  std::vector<int32_t> kinds = {3, unknown ? 2 : 3};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (!has(bytes, byte) || std::string_view(model) == "bert") continue;
    tokens.push_back(byte_piece(byte));
    kinds.push_back(6);
  }
  for (const std::string& text : Texts{"a", "b", "ab", kMark, kMark + "a", "\xEF\xBF\xBD", "\xC3\xA9"})
    tokens.push_back(text);
  kinds.resize(tokens.size(), 1);
  GgufWriter out;
  out.value("tokenizer.ggml.model", model).value("tokenizer.ggml.pre", pre);
  out.value("tokenizer.ggml.tokens", tokens).value("tokenizer.ggml.token_type", kinds);
  out.value("tokenizer.ggml.scores", std::vector<float>(tokens.size(), -1));
  out.value("tokenizer.ggml.merges", Texts{"a b", kMark + " a"});
  if (unknown) out.value("tokenizer.ggml.unknown_token_id", 1u);
  return out;
}

// Texts of each byte alone, then mixes of any bytes, characters of all planes, controls and long runs.
Texts any_texts(uint32_t seed, uint32_t count) {
  const Texts words = {" ",        "the",      "tht", "'s", "1242",        "ab",
                       "\xC2\xBD", "\xD0\xBC", kMark, "\n", "\xEF\xBF\xBD"};
  Texts out;
  for (uint32_t byte = 0; byte < 256; ++byte) out.emplace_back(1, char(byte));
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return uint32_t(random() % n); };
  while (out.size() < 256 + count) {
    std::string text;
    for (uint32_t parts = 1 + below(24); parts; --parts) {
      std::string part;
      switch (below(6)) {
        case 0:
          for (uint32_t i = 1 + below(4); i; --i) part.push_back(char(below(256)));
          break;
        case 1:
          append_utf8(below(0x110000), &part);
          break;
        case 2:
          append_utf8(below(0x800), &part);
          break;
        case 3:
          part.push_back(char(below(32)));
          break;
        case 4:
          part = words[below(uint32_t(words.size()))];
          break;
        default:
          part = std::string(1 + below(3), char(32 + below(95)));
      }
      const uint32_t repeats = below(20) ? 1 : 1 + below(300);
      for (uint32_t i = 0; i < repeats; ++i) text += part;
    }
    out.push_back(text);
  }
  return out;
}

// Encodes all texts in both ways, and checks that it can be done, gives ids of the vocabulary, and that no
// more than one line is logged. `check` gets what plain encoding gave.
template <class Check>
void encode_all(const Vocabulary& vocabulary, const Texts& texts, Check check) {
  uint64_t failed = 0, outside = 0;
  for (const std::string& text : texts) {
    Ids ids, special;
    failed += !vocabulary.tokenizer.encode(text, {false, false}, &ids).ok();
    failed += !vocabulary.tokenizer.encode(text, {true, true}, &special).ok();
    check(text, ids);
    special.insert(special.end(), ids.begin(), ids.end());
    for (const int32_t id : special) outside += id < 0 || uint32_t(id) >= vocabulary.tokenizer.size();
  }
  CHECK(failed == 0);
  CHECK(outside == 0);
  CHECK(vocabulary.log.size() <= 1);
}

std::string bytes_of(const Tokenizer& tokenizer, const Ids& ids) {
  std::string out;
  for (const int32_t id : ids) tokenizer.append_piece(id, false, &out);
  return out;
}

}  // namespace

TEST_CASE("every byte string is encoded by every pre-tokenizer", "[engine][tokenizer]") {
  const Texts texts = any_texts(1, 2000);
  for (const SplitRule& rule : split_rules()) {
    const std::string name(rule.names.substr(0, rule.names.find(' ')));
    for (const Bytes bytes : kAllBytes) {
      INFO(name << ", bytes " << int(bytes));
      const bool characters = rule.has(kCharacters);
      const Vocabulary vocabulary(characters ? pieces("gpt2", name.c_str(), bytes, false)
                                             : byte_level(name.c_str(), bytes));
      uint64_t wrong = 0;
      const Texts some(texts.begin(), bytes == Bytes::Half ? texts.end() : texts.begin() + 400);
      encode_all(vocabulary, some, [&](const std::string& text, const Ids& ids) {
        std::string expected;  // the text without the bytes that have no token
        for (const char c : valid_utf8(text))
          if (has(bytes, uint8_t(c))) expected.push_back(c);
        wrong += !characters && bytes_of(vocabulary.tokenizer, ids) != expected;
      });
      CHECK(wrong == 0);
      CHECK(vocabulary.log.size() == (bytes != Bytes::All));
    }
  }
}

TEST_CASE("every byte string is encoded by every kind of vocabulary", "[engine][tokenizer]") {
  const Texts texts = any_texts(2, 2000);
  for (const char* model : {"llama", "gemma4", "bert", "t5"}) {
    for (const Bytes bytes : kAllBytes) {
      for (const bool unknown : {false, true}) {
        INFO(model << ", bytes " << int(bytes) << ", unknown token " << unknown);
        const Vocabulary vocabulary(pieces(model, "default", bytes, unknown));
        encode_all(vocabulary, texts, [](const std::string&, const Ids&) {});
        const bool complete = bytes == Bytes::All && std::string_view(model) != "bert";
        CHECK(vocabulary.log.size() == (!complete && !unknown));
      }
    }
  }
}

TEST_CASE("what has no token is left out, and said once", "[engine][tokenizer]") {
  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "gpt2").value("tokenizer.ggml.pre", "gpt-2");
  writer.value("tokenizer.ggml.tokens", Texts{"<|endoftext|>", "a", "c", "ac", "\xC3\x82"});
  writer.value("tokenizer.ggml.merges", Texts{"a c"}).value("tokenizer.ggml.unknown_token_id", 0u);
  writer.value("tokenizer.ggml.token_type", std::vector<int32_t>{3, 1, 1, 1, 1});
  const Vocabulary vocabulary(writer);
  const auto encode = [&](std::string_view text) {
    Ids ids;
    REQUIRE(vocabulary.tokenizer.encode(text, {false, false}, &ids).ok());
    return ids;
  };
  CHECK(encode("ac") == Ids{3});
  CHECK(encode("ca") == Ids{2, 1});
  CHECK(vocabulary.log.empty());
  CHECK(encode("abc") == Ids{3});  // a and c are neighbours then, and a file's unknown token is not used
  CHECK(encode("a\xC2\xB5") == Ids{1, 4});  // one byte of a character
  CHECK(encode("\v") == Ids{});
  CHECK(encode("xyz") == Ids{});
  CHECK(encode(std::string(100, 'x') + "a" + std::string(100, 'x') + "c") == Ids{3});
  REQUIRE(vocabulary.log.size() == 1);
  CHECK(vocabulary.log[0].find("memory: the vocabulary has no token for \"b\"") == 0);
}

TEST_CASE("characters without a token are one unknown token", "[engine][tokenizer]") {
  for (const char* model : {"llama", "gemma4", "t5"}) {
    INFO(model);
    const Vocabulary unknown(pieces(model, "default", Bytes::None, true));
    const Vocabulary none(pieces(model, "default", Bytes::None, false));
    const int32_t a = unknown.tokenizer.find("a"), b = unknown.tokenizer.find("b");
    const auto encode = [](const Vocabulary& vocabulary, std::string_view text) {
      Ids ids;
      REQUIRE(vocabulary.tokenizer.encode(text, {false, false}, &ids).ok());
      ids.erase(ids.begin(), ids.begin() + (ids[0] == vocabulary.tokenizer.find(kMark)));  // the prefix
      return ids;
    };
    CHECK(encode(unknown, "bxyzaxb") == Ids{b, 1, a, 1, b});
    CHECK(encode(none, "bxyzbxa") == Ids{b, b, a});
    CHECK(unknown.log.empty());
    REQUIRE(none.log.size() == 1);
    CHECK(none.log[0].find("no token for \"x") != std::string::npos);
  }
}

TEST_CASE("every byte string is encoded by the vocabularies at hand", "[engine][tokenizer][data]") {
  const std::filesystem::path data = test::test_data();
  const Texts texts = any_texts(3, 2000);
  uint32_t files = 0;
  for (const char* folder : {"vocab", "models"}) {
    if (!std::filesystem::is_directory(data / folder)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(data / folder)) {
      if (entry.path().extension() != ".gguf") continue;
      INFO(entry.path());
      ++files;
      Source source;
      REQUIRE(source.open_file(entry.path().c_str()).ok());
      const Vocabulary vocabulary(std::move(source));
      const Tokenizer& tokenizer = vocabulary.tokenizer;
      uint64_t wrong = 0;
      encode_all(vocabulary, texts, [&](const std::string& text, const Ids& ids) {
        // Those that carry spaces as U+2581 read it as a space.
        if (tokenizer.kind() == TokenizerKind::Bpe) wrong += bytes_of(tokenizer, ids) != valid_utf8(text);
        if (tokenizer.kind() == TokenizerKind::Spm && text.find(kMark) == text.npos)
          wrong += tokenizer.decode(ids.data(), ids.size()) != valid_utf8(text);
      });
      CHECK(wrong == 0);
      CHECK(vocabulary.log.empty());
    }
  }
  CHECK(files > 0);
}
