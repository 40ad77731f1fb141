// Counts how much work encoding is, for texts and vocabularies that were made to be slow.
#include <catch2/catch_test_macros.hpp>

#include "support/gguf_writer.h"
#include "text/tokenizer/tokenizer.h"

using namespace greta;
using test::GgufWriter;

namespace {

using Texts = std::vector<std::string>;
const std::string kMark = "\xE2\x96\x81";

// A tokenizer over the vocabulary that a writer wrote.
struct Opened {
  explicit Opened(const GgufWriter& writer) : file(writer.file()) {
    Source source;
    Status status = source.open_memory(file.data(), file.size());
    if (status.ok()) status = gguf.open(std::move(source));
    if (status.ok()) status = tokenizer.open(gguf, Log{});
    INFO(error_text());
    REQUIRE(status.ok());
  }
  const std::string file;
  Gguf gguf;
  Tokenizer tokenizer;
};

uint64_t steps(const GgufWriter& writer, const std::string& text) {
  const Opened opened(writer);
  std::vector<int32_t> ids;
  uint64_t count = 0;
  REQUIRE(opened.tokenizer.encode(text, {false, false, &count}, &ids).ok());
  CHECK(count >= text.size() / 4);  // it does count
  return count;
}

// How often should_stop is asked while a text is encoded, if it says so at call `stop`; 0: never.
uint64_t questions(const GgufWriter& writer, const std::string& text, uint64_t stop) {
  struct Answer {
    uint64_t stop;
    mutable uint64_t calls;
  } answer = {stop, 0};
  const Opened opened(writer);
  EncodeOptions options{.add_special = false};
  options.should_stop = [](const void* user) {
    const auto& a = *static_cast<const Answer*>(user);
    return int(++a.calls == a.stop);
  };
  options.user = &answer;
  std::vector<int32_t> ids;
  const Status status = opened.tokenizer.encode(text, options, &ids);
  CHECK(status.code == (stop ? Code::Cancelled : Code::Ok));
  return answer.calls;
}

std::string repeat(const std::string& unit, size_t bytes) {
  std::string out;
  while (out.size() < bytes) out += unit;
  return out;
}

// Merges that build a^2, a^3, ... one letter at a time, or by doubling.
GgufWriter bpe(const char* rule, bool doubling) {
  Texts tokens, merges;
  for (size_t length = 2; length <= 64; length = doubling ? length * 2 : length + 1) {
    tokens.push_back(std::string(length, 'a'));
    const size_t left = doubling ? length / 2 : length - 1;
    merges.push_back(std::string(left, 'a') + " " + std::string(length - left, 'a'));
  }
  return test::bpe_vocabulary(tokens, merges, rule);
}

GgufWriter spm(float step) {
  Texts pieces = {kMark};
  std::vector<float> scores = {0};
  for (size_t length = 1; length <= 48; ++length) {
    pieces.push_back(std::string(length, 'a'));
    scores.push_back(step * float(length));
  }
  return test::spm_vocabulary(pieces, scores);
}

}  // namespace

// A word of n symbols has n - 1 pairs and at most n - 1 merges, each of which makes two new pairs. So there
// are 3n look-ups, and each is taken from the heap once.
TEST_CASE("merging a megabyte without a break takes six steps for each byte", "[engine][tokenizer]") {
  const std::string text(1 << 20, 'a');
  for (const char* rule : {"gpt-2", "llama-bpe", "sarvam-moe"})
    for (const bool doubling : {false, true}) CHECK(steps(bpe(rule, doubling), text) <= 6 * text.size());
  for (const float step : {-1.0f, 0.0f, 1.0f}) CHECK(steps(spm(step), text) <= 6 * (text.size() + 3));
}

TEST_CASE("and so does a megabyte of words as long as those that are merged by looking",
          "[engine][tokenizer]") {
  std::string text;
  for (uint32_t i = 0; text.size() < 1 << 20; ++i)  // no word twice, so that none is copied
    text += std::string(16 + i % 12, 'a') + std::to_string(i * 2654435761u) + " ";
  CHECK(steps(bpe("gpt-2", false), text) <= 16 * text.size());
}

TEST_CASE("unigram looks no further than its longest token", "[engine][tokenizer]") {
  Texts tokens = {"<unk>"};
  std::vector<int32_t> kinds = {2};
  for (size_t length = 1; length <= 32; ++length) tokens.push_back(std::string(length, 'a'));
  kinds.resize(tokens.size(), 1);
  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "t5").value("tokenizer.ggml.tokens", tokens);
  writer.value("tokenizer.ggml.scores", std::vector<float>(tokens.size(), -1));
  writer.value("tokenizer.ggml.token_type", kinds);
  const std::string text(1 << 20, 'a');
  CHECK(steps(writer, text) <= 33 * (text.size() + 3));
  // A charsmap whose first node leads to itself: keys without end, none of which matches.
  std::vector<uint8_t> map(4 + 4 * 256 + 1);
  const auto unit = [&](uint32_t index, uint32_t value) {
    for (int byte = 0; byte < 4; ++byte) map[4 + 4 * index + size_t(byte)] = uint8_t(value >> (8 * byte));
  };
  map[1] = 4;                  // 1024 bytes of units
  unit(0, ('b' ^ 'a') << 10);  // from the root by 'a' to 'b'
  unit('b', 'a' | (0 << 10));  // its label is 'a'; from there by 'a' to 'b' ^ 'a'
  unit('b' ^ 'a', 'a' | (('b' ^ 'a' ^ 'b') << 10));
  writer.array("tokenizer.ggml.precompiled_charsmap", 0, map);
  CHECK(steps(writer, text) <= (33 + 64) * (text.size() + 3));
}

TEST_CASE("WordPiece looks no further than a word", "[engine][tokenizer]") {
  GgufWriter writer;
  Texts tokens = {"[UNK]", kMark + "a"};
  for (size_t length = 1; length <= 120; ++length) tokens.push_back(std::string(length, 'a') + "b");
  writer.value("tokenizer.ggml.model", "bert").value("tokenizer.ggml.tokens", tokens);
  const std::string text = repeat(std::string(100, 'a') + " ", 1 << 20);
  CHECK(steps(writer, text) <= 103 * text.size());
}

TEST_CASE("special tokens that almost match everywhere are bounded", "[engine][tokenizer]") {
  const std::string text(1 << 16, '<');
  for (const size_t bytes : {size_t(500), size_t(4000)}) {
    const std::string almost = std::string(bytes, '<') + "|>";
    const uint64_t most =
        bytes <= kMaxSpecialBytes ? bytes + 7 : 6;  // for each byte: longer ones are not tried
    CHECK(steps(test::bpe_vocabulary({almost}, {}, "gpt-2"), text) <= most * text.size());
  }
}

// The first four questions come while special tokens are looked for in 256 KiB, the others from the encoder.
TEST_CASE("a caller ends the encoding of a long text, in every kind of tokenizer", "[engine][tokenizer]") {
  const std::string word(1 << 18, 'a'), words = repeat("aa ", 1 << 18);
  GgufWriter ugm, wpm;
  ugm.value("tokenizer.ggml.model", "t5").value("tokenizer.ggml.tokens", Texts{"<unk>", "a"});
  ugm.value("tokenizer.ggml.scores", std::vector<float>{0, -1});
  ugm.value("tokenizer.ggml.token_type", std::vector<int32_t>{2, 1});
  wpm.value("tokenizer.ggml.model", "bert").value("tokenizer.ggml.tokens", Texts{"[UNK]", kMark + "a", "a"});
  for (const GgufWriter& writer : {bpe("gpt-2", false), bpe("sarvam-moe", true), spm(1), ugm, wpm})
    for (const std::string& text : {word, words}) {
      const uint64_t all = questions(writer, text, 0);
      CHECK(all >= 5);
      for (const uint64_t stop : {uint64_t(1), uint64_t(5), all})
        CHECK(questions(writer, text, stop) == stop);
    }
}
