// Vocabularies that are broken or hostile give a clear error or follow a stated rule.
#include <catch2/catch_test_macros.hpp>

#include "support/failing_memory.h"
#include "support/gguf_writer.h"
#include "text/tokenizer/tokenizer.h"

using namespace greta;
using test::bpe_vocabulary;
using test::GgufWriter;
using test::spm_vocabulary;

namespace {

using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;

struct Opened {
  std::string file;
  Gguf gguf;
  Tokenizer tokenizer;
  Status status;
  explicit Opened(const GgufWriter& writer) : file(writer.file()) {
    Source source;
    status = source.open_memory(file.data(), file.size());
    if (status.ok()) status = gguf.open(std::move(source));
    if (status.ok()) status = tokenizer.open(gguf, Log{});
  }
  Ids encode(std::string_view text) const {
    Ids ids;
    const Status result = tokenizer.encode(text, {false, true}, &ids);
    INFO(error_text());
    REQUIRE(result.ok());
    return ids;
  }
};

// A unigram vocabulary with a charsmap of these bytes.
GgufWriter ugm(const std::string& charsmap) {
  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "t5").value("tokenizer.ggml.tokens", Texts{"<unk>", "a"});
  writer.value("tokenizer.ggml.scores", std::vector<float>{0, -1});
  writer.value("tokenizer.ggml.token_type", std::vector<int32_t>{2, 1});
  return writer.array("tokenizer.ggml.precompiled_charsmap", 0,
                      std::vector<uint8_t>(charsmap.begin(), charsmap.end()));
}

// The bytes of a charsmap: its units, then the replacements.
std::string charsmap(const std::vector<uint32_t>& units, const std::string& replacements) {
  test::Bytes out;
  out.u32(uint32_t(units.size() * 4));
  for (const uint32_t unit : units) out.u32(unit);
  return out.data + replacements;
}

GgufWriter spm(const Texts& tokens, const std::vector<float>& scores, const std::vector<int32_t>& kinds) {
  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "llama").value("tokenizer.ggml.tokens", tokens);
  if (!scores.empty()) writer.value("tokenizer.ggml.scores", scores);
  if (!kinds.empty()) writer.value("tokenizer.ggml.token_type", kinds);
  return writer;
}

// A vocabulary of this kind with one token and nothing else.
GgufWriter one_token(const char* model, const std::string& token = "a") {
  return GgufWriter().value("tokenizer.ggml.model", model).value("tokenizer.ggml.tokens", Texts{token});
}

struct Refused {
  const char* what;
  GgufWriter writer;
  const char* expected;  // in the error
  Code code = Code::File;
};

void check(const Refused& row) {
  INFO(row.what);
  const test::FailingMemory memory(0);
  const Opened opened(row.writer);
  CHECK(memory.peak_bytes() < test::kMostOfRefusal);
  const std::string text = error_text();
  INFO(text);
  CHECK(opened.status.code == row.code);
  CHECK(text.substr(0, 8) == "memory: ");
  CHECK(text.find(row.expected) != text.npos);
}

}  // namespace

TEST_CASE("tokens that are broken are refused in words", "[engine][tokenizer]") {
  const Refused rows[] = {
      {"none", GgufWriter(), "\"tokenizer.ggml.model\" is missing"},
      {"another kind", GgufWriter().value("tokenizer.ggml.model", "rwkv"), "tokenizer \"rwkv\"",
       Code::Unsupported},
      {"a number as kind", GgufWriter().value("tokenizer.ggml.model", 1u), "expected a string"},
      {"CVE-2025-0312: no tokens", GgufWriter().value("tokenizer.ggml.model", "llama"),
       "\"tokenizer.ggml.tokens\" is missing"},
      {"zero tokens", spm({}, {}, {}), "0 tokens"},
      {"tokens of numbers",
       GgufWriter()
           .value("tokenizer.ggml.model", "llama")
           .value("tokenizer.ggml.tokens", std::vector<float>{1}),
       "expected an array of string"},
      {"no scores", spm({"a"}, {}, {}), "\"tokenizer.ggml.scores\" is missing"},
      {"scores of another length", spm({"a", "b"}, {1}, {}), "1 values, expected 2, one for each token"},
      {"CVE-2025-0313: kinds of another length", spm({"a", "b"}, {1, 2}, {1}),
       "token_type has 1 values, expected 2"},
      {"a kind that is none", spm({"a"}, {1}, {7}), "token 0 is 7, expected 0 to 6"},
      {"a kind below zero", spm({"a"}, {1}, {-1}), "token 0 is -1"},
      {"llama.cpp#25969: a byte <0x-1>", spm({"<0x-1>"}, {1}, {6}), "\"<0x-1>\", expected <0x00> to <0xFF>"},
      {"a byte of three digits", spm({"<0x100>"}, {1}, {6}), "expected <0x00>"},
      {"an empty byte", spm({""}, {1}, {6}), "expected <0x00>"},
      {"CVE-2025-49847: a token too long", spm({std::string(20000, 'x')}, {1}, {}),
       "20000 bytes, expected at most 16384"},
  };
  for (const Refused& row : rows) check(row);
}

TEST_CASE("keys of a vocabulary that are broken are refused in words", "[engine][tokenizer]") {
  const Refused rows[] = {
      {"an id beyond the end", spm({"a"}, {1}, {}).value("tokenizer.ggml.bos_token_id", 1u),
       "bos_token_id is 1, expected an id below the 1"},
      {"an id below zero", spm({"a"}, {1}, {}).scalar("tokenizer.ggml.eos_token_id", 5, int32_t(-2)),
       "-2, expected 0"},
      {"an id as text", spm({"a"}, {1}, {}).value("tokenizer.ggml.eos_token_id", "a"), "an integer"},
      {"a flag as number", spm({"a"}, {1}, {}).value("tokenizer.ggml.add_bos_token", 1u), "a bool"},
      {"no merges", one_token("gpt2"), "\"tokenizer.ggml.merges\" is missing"},
      {"gemma4 without merges", one_token("gemma4"), "\"tokenizer.ggml.merges\" is missing"},
  };
  for (const Refused& row : rows) check(row);
}

TEST_CASE("unigram and WordPiece vocabularies that are broken are refused in words", "[engine][tokenizer]") {
  const Refused rows[] = {
      {"unigram without scores", one_token("t5"), "\"tokenizer.ggml.scores\" is missing"},
      {"unigram with a long token",
       one_token("t5", std::string(513, 'x')).value("tokenizer.ggml.scores", std::vector<float>{1}),
       "513 bytes, expected at most 512 in a unigram"},
      {"a charsmap of text",
       one_token("t5")
           .value("tokenizer.ggml.scores", std::vector<float>{1})
           .value("tokenizer.ggml.precompiled_charsmap", "a"),
       "not an array of bytes"},
      {"a charsmap of three bytes", ugm("abc"), "3 bytes and claims 0 of units"},
      {"a charsmap without units", ugm(std::string(8, 0)), "claims 0 of units"},
      {"a charsmap of half units", ugm(std::string("\6\0\0\0abcdefgh", 12)), "claims 6 of units"},
      {"a charsmap that claims more than it has", ugm(std::string("\20\0\0\0abcdefgh", 12)),
       "12 bytes and claims 16 of units"},
      {"a charsmap that claims all there is",
       ugm("\xFC\xFF\xFF\xFF"
           "abcd"),
       "8 bytes and claims 4294967292 of units"},
      {"a WordPiece flag as text", one_token("bert").value("tokenizer.ggml.normalizer.lowercase", "yes"),
       "a bool"},
  };
  for (const Refused& row : rows) check(row);
}

TEST_CASE("more tokens than the limit are refused", "[engine][tokenizer]") {
  test::Bytes payload;
  payload.u32(8).u64(kMaxTokens + 1).data.append((kMaxTokens + 1) * 8, 0);
  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "llama").raw_value("tokenizer.ggml.tokens", 9, payload.data);
  CHECK(Opened(writer).status.code == Code::File);
  CHECK(std::string(error_text()).find("1048577 tokens, expected 1 to 1048576") != std::string::npos);
}

TEST_CASE("holes and twins follow the stated rules", "[engine][tokenizer]") {
  const std::string mark = "\xE2\x96\x81";
  const Opened twins(spm({"<unk>", mark, "a", "", "a", "", "ab", "b", "ab"}, {0, 0, 0, 0, 9, 0, -1, 0, 5},
                         {2, 1, 1, 1, 1, 1, 1, 1, 1}));
  REQUIRE(twins.status.ok());
  CHECK(twins.encode("a") == Ids{1, 2});
  CHECK(twins.encode("ab") == Ids{1, 6});
  CHECK(twins.tokenizer.piece(3).empty());
  CHECK(twins.tokenizer.piece(-1).empty());
  CHECK(twins.tokenizer.piece(9).empty());
  CHECK(twins.tokenizer.piece(INT32_MAX).empty());
  CHECK(twins.tokenizer.find("") == kNoToken);

  // Text never turns into a control token, even where one has the text that a merge would make.
  const Opened control(
      spm({"<unk>", mark, "<", "s", ">", "<s", "<s>"}, std::vector<float>(7, 0), {2, 1, 1, 1, 1, 1, 3}));
  REQUIRE(control.status.ok());
  Ids ids;
  REQUIRE(control.tokenizer.encode("<s>", {false, false}, &ids).ok());
  CHECK(ids == Ids{1, 5, 4});
  CHECK(control.encode("<s>") == Ids{6});

  // Nor does the twin of a control token hide the plain one.
  const Opened hidden(spm({"a", mark, "a"}, {0, 0, 0}, {3, 1, 1}));
  REQUIRE(hidden.status.ok());
  ids.clear();
  REQUIRE(hidden.tokenizer.encode("a", {false, false}, &ids).ok());
  CHECK(ids == Ids{1, 2});
}

TEST_CASE("merges that cannot be are skipped", "[engine][tokenizer]") {
  const Texts merges = {"", " ", "a", "a ", " a", "x yz", "a b", "a b", "ab c", "b  c", "a b c"};
  const Opened opened(bpe_vocabulary({"ab", "<|c|>"}, merges, "llama-bpe"));
  REQUIRE(opened.status.ok());
  CHECK(opened.encode("abc") == Ids{256, 'c'});
}

TEST_CASE("a charsmap that leads astray is refused", "[engine][tokenizer]") {
  // 'a' leads from the root to unit 'a', which is its child and ends a key whose value is at unit 'a' ^ of_a.
  const auto units = [](uint32_t of_a, uint32_t value) {
    std::vector<uint32_t> out(256, 0);
    out['a'] = 'a' | 0x100 | of_a << 10;
    out['a' ^ of_a] |= value | 1u << 31;
    return out;
  };
  const struct {
    const char* what;
    std::string map;
    const char* expected;  // in the error; null if there is none
  } rows[] = {
      {"sound", charsmap(units('b', 2), std::string("x\0yz\0", 5)), nullptr},
      {"units that end before the root's child", charsmap({0}, "x"), "leads to unit 255, but has 1"},
      {"none", "", nullptr},
      {"an offset past the replacements", charsmap(units('b', 5), std::string("x\0yz\0", 5)),
       "no replacement of at most 512 bytes at 5"},
      {"a huge offset", charsmap(units('b', 0x7FFFFFFF), std::string("x\0", 2)), "at 2147483647"},
      {"a replacement without an end", charsmap(units('b', 2), std::string("x\0yz", 4)), "at 2"},
      {"a replacement too long", charsmap(units('b', 0), std::string(513, 'y') + std::string(1, 0)), "at 0"},
      {"no replacements", charsmap(units('b', 0), ""), "at 0"},
  };
  for (const auto& row : rows) {
    INFO(row.what);
    const Opened opened(ugm(row.map));
    const std::string text = error_text();
    INFO(text);
    CHECK(opened.status.code == (row.expected ? Code::File : Code::Ok));
    if (row.expected) CHECK(text.find(row.expected) != text.npos);
    if (!row.expected && *row.map.c_str()) CHECK(opened.encode("a") == Ids{0});  // "yz" has no tokens
  }
  std::vector<uint32_t> outside = units('b', 0);
  outside['a'] = 'a' | 0x100 | 0x1FFFFFu << 10;
  CHECK(Opened(ugm(charsmap(outside, "x"))).status.code == Code::File);
  CHECK(std::string(error_text()).find("leads to unit 2097") != std::string::npos);
}

TEST_CASE("CVE-2025-52566: a text too long is refused before it is read", "[engine][tokenizer]") {
  const Opened opened(spm({"a"}, {0}, {}));
  REQUIRE(opened.status.ok());
  Ids ids;
  CHECK(opened.tokenizer.encode({"a", kMaxTextBytes + 1}, {}, &ids).code == Code::Argument);
  CHECK(ids.empty());
}

TEST_CASE("refusing large vocabularies takes memory by what they hold", "[engine][tokenizer]") {
  constexpr int32_t kTokens = 400'000;
  Texts tokens, merges;
  for (int32_t i = 0; i < kTokens; ++i) tokens.push_back("t" + std::to_string(i));
  for (int32_t i = 0; i < kTokens; ++i) merges.push_back("t " + std::to_string(i));
  std::vector<int32_t> kinds(kTokens, 1);
  kinds.back() = 6;  // a byte, which its text is not
  const GgufWriter rows[] = {spm(tokens, std::vector<float>(kTokens), kinds),
                             GgufWriter()
                                 .value("tokenizer.ggml.model", "gpt2")
                                 .value("tokenizer.ggml.tokens", tokens)
                                 .value("tokenizer.ggml.merges", merges)
                                 .value("tokenizer.ggml.bos_token_id", uint32_t(kTokens))};
  for (const GgufWriter& row : rows) {
    const std::string file = row.file();
    Source source;
    REQUIRE(source.open_memory(file.data(), file.size()).ok());
    const test::FailingMemory memory(0);
    Gguf gguf;
    REQUIRE(gguf.open(std::move(source)).ok());
    CHECK(Tokenizer().open(gguf, Log{}).code == Code::File);
    INFO(error_text() << "; " << memory.peak_bytes() << " bytes for a header of " << file.size());
    CHECK(memory.peak_bytes() > 1'000'000);  // it was read
    CHECK(memory.peak_bytes() < test::kMostOfRefusal);
  }
}

TEST_CASE("a hash table refuses entries that crowd one place", "[engine][tokenizer]") {
  SlotTable table;
  table.reserve(100000);
  uint32_t inserted = 0;
  while (table.insert(7, inserted)) ++inserted;
  CHECK(inserted == SlotTable::kMaxProbes + 1);
  CHECK(table.find(7, [](uint32_t i) { return i == SlotTable::kMaxProbes; }) ==
        int32_t(SlotTable::kMaxProbes));
  CHECK(table.find(7, [](uint32_t) { return false; }) == kNoToken);
  table.replace(7, 99999, [](uint32_t i) { return i == 3; });
  CHECK(table.find(7, [](uint32_t i) { return i == 99999; }) == 99999);
}

TEST_CASE("what a special token leaves of a character is text like any other", "[engine][tokenizer]") {
  const Opened opened(spm({"<unk>", "\x96\x81", "\xE2"}, {0, 0, 0}, {2, 4, 1})
                          .value("tokenizer.ggml.add_space_prefix", false)
                          .value("tokenizer.ggml.add_bos_token", false));
  INFO(error_text());
  REQUIRE(opened.status.ok());
  CHECK(opened.encode("\xE2\x96\x81") == Ids{2, 1});
  CHECK(opened.encode("\xE1\x96\x81") == Ids{0, 1});
}
