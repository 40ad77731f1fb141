// Pre-tokenizers on words cut by hand, and on random texts cut by the published regular expressions.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "places.h"
#include "text/tokenizer/split.h"

using namespace greta;

namespace {

using Words = std::vector<std::string>;

Words cut(const SplitRule& rule, const std::string& text) {
  std::vector<uint32_t> ends;
  split_words(rule, text, &ends);
  Words words;
  uint32_t start = 0;
  for (const uint32_t end : ends) {
    words.push_back(text.substr(start, end - start));
    start = end;
  }
  CHECK(start == text.size());
  return words;
}

Words cut(const char* name, const std::string& text) {
  const SplitRule* rule = find_split_rule(name);
  REQUIRE(rule);
  return cut(*rule, text);
}

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t at = 0; at + 1 < hex.size(); at += 2)
    out.push_back(char(std::stoi(hex.substr(at, 2), nullptr, 16)));
  return out;
}

}  // namespace

TEST_CASE("words of the Llama 3 pre-tokenizer", "[engine][tokenizer]") {
  const struct {
    const char* text;
    Words words;
  } rows[] = {
      {"Hello world", {"Hello", " world"}},
      {"I'll say 'Hi' they'RE", {"I", "'ll", " say", " '", "Hi", "'", " they", "'RE"}},
      {"'LL's'x", {"'LL", "'s", "'x"}},
      {"12345 6", {"123", "45", " ", "6"}},
      {"a  b", {"a", " ", " b"}},
      {"a   ", {"a", "   "}},
      {"a \n\n  b", {"a", " \n\n", " ", " b"}},
      {"x!?\r\ny", {"x", "!?\r\n", "y"}},
      {" ...\n a", {" ...\n", " a"}},
      {"\tif(x)", {"\tif", "(x", ")"}},
      {"\nfoo", {"\n", "foo"}},
      {"\xC3\xA9t\xC3\xA9\xC2\xA0x", {"\xC3\xA9t\xC3\xA9", "\xC2\xA0x"}},
      {"a\xCC\x81 b", {"a", "\xCC\x81", " b"}},  // a mark is neither letter nor number
      {"'\xC5\xBF'", {"'\xC5\xBF", "'"}},        // (?i:'s) matches the long s
      {" 7", {" ", "7"}},
      {"'", {"'"}},
      {" ", {" "}},
      {"", {}},
  };
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK(cut("llama-bpe", row.text) == row.words);
  }
}

TEST_CASE("what sets the pre-tokenizers apart", "[engine][tokenizer]") {
  const struct {
    const char* name;
    const char* text;
    Words words;
  } rows[] = {
      {"qwen2", "12 3", {"1", "2", " ", "3"}},
      {"gpt-2", "don't 123 a  \n b", {"don", "'t", " 123", " a", "  \n", " b"}},
      {"gpt-2", "DON'T", {"DON", "'", "T"}},
      {"starcoder", "x 42", {"x", " ", "4", "2"}},
      {"minicpm5", "1234a", {"123", "4", "a"}},
      {"qwen35", "e\xCC\x81te 5", {"e\xCC\x81te", " ", "5"}},
      {"seed-coder", "a;\n\nb", {"a", ";", "\n\n", "b"}},
      {"ufakzeka", "x'te 's", {"x", "'te", " '", "s"}},
      {"exaone-moe", "the cat sat. 12", {"the cat sat", ".", " ", "1", "2"}},
      {"exaone-moe", "a/\n/b", {"a", "/\n", "/b"}},
      {"gpt-4o", "iPhone HTTPServer don't", {"i", "Phone", " HTTPServer", " don't"}},
      {"gpt-4o",
       "\xE6\xBC\xA2"
       "ABC",
       {"\xE6\xBC\xA2", "ABC"}},  // U* gives a caseless letter back to L+
      {"gpt-4o", "x //\n/y 1234", {"x", " //\n/", "y", " ", "123", "4"}},
      {"tekken", "don't 12", {"don", "'t", " ", "1", "2"}},
      {"kimi-k2", "hi\xE4\xBD\xA0\xE5\xA5\xBDHi", {"hi", "\xE4\xBD\xA0\xE5\xA5\xBD", "Hi"}},
      {"deepseek-v3", "f(x1) _y", {"f", "(x", "1", ")", " _", "y"}},
      {"deepseek-coder", "a\n\nb 12", {"a", "\n", "\n", "b", " ", "1", "2"}},
      {"deepseek-llm", "if (a  ", {"if", " (", "a", "  "}},
      {"falcon", "a+b 1234!", {"a", "+", "b", " ", "123", "4", "!"}},
      {"falcon",
       "1\xC2\xBD"
       "234",
       {"1", "\xC2", "\xBD", "234"}},  // within a character, as its bytes are numbers
      {"falcon", "\xD0\xBC\xD9\xA3", {"\xD0", "\xBC", "\xD9\xA3"}},
      {"default", "a`b", {"a", "`", "b"}},
      {"bloom", "Hi, you (all)", {"Hi", ",", " you", " (", "all", ")"}},
      {"viking", "a12", {"a", "1", "2"}},
      {"superbpe", "by 1234567 or so", {"by ", "1", "234", "567", " or so"}},
      {"afmoe", "1234567a", {"1", "234", "567", "a"}},
      {"tiny_aya", "1234567 1234a", {"1", "234", "567", " ", "123", "4", "a"}},
      {"chameleon", "a\tIMGIMGABZx 1", {"a", "\t", "IMGIMGABZ", "x", " ", "1"}},
      {"laguna", "a\n\n\nb", {"a", "\n\n\n", "b"}},
      {"gemma4", "one line\n\nnext ", {"one line", "\n\n", "next "}},
      {"spark2_5", "a!\n\n12", {"a", "!", "\n", "\n", "1", "2"}},
      {"youtu",
       "\xEA\xB0\x80\xE4\xBD\xA0"
       "Ab",
       {"\xEA\xB0\x80", "\xE4\xBD\xA0", "Ab"}},
      {"jais-2", "a       b", {"a", "    ", "  ", " b"}},
  };
  for (const auto& row : rows) {
    INFO(row.name << ": " << row.text);
    CHECK(cut(row.name, row.text) == row.words);
  }
  CHECK_FALSE(find_split_rule("no such"));
  CHECK(default_split_rule().names == "default");
}

// make_split_vectors.py writes the list; GRETA_SPLIT_VECTORS may name a longer one.
TEST_CASE("random texts are cut as the published expressions cut them", "[engine][tokenizer]") {
  const char* other = std::getenv("GRETA_SPLIT_VECTORS");
  std::ifstream in(other ? other : GRETA_SOURCE_DIR "/tests/text/tokenizer/split_vectors.tsv");
  REQUIRE(in);
  uint64_t cases = 0, wrong = 0;
  for (std::string line; std::getline(in, line); ++cases) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    REQUIRE(second != line.npos);
    const std::string text = from_hex(line.substr(first + 1, second - first - 1));
    std::istringstream lengths(line.substr(second + 1)), names(line.substr(0, first));
    Words expected;
    size_t at = 0;
    for (size_t bytes; lengths >> bytes; at += bytes) expected.push_back(text.substr(at, bytes));
    REQUIRE(at == text.size());
    for (std::string name; std::getline(names, name, ',');) {
      const SplitRule* rule = find_split_rule(name);
      REQUIRE(rule);
      INFO(name << ": " << line.substr(first + 1, second - first - 1));
      if (wrong < 20) {
        const Words words = cut(*rule, text);
        CHECK(words == expected);
        wrong += words != expected;
      }
    }
  }
  CHECK(cases > 1000);
}

TEST_CASE("long runs are cut without gaps", "[engine][tokenizer]") {
  for (const char* name :
       {"default",      "gpt-2",          "starcoder",   "llama-bpe",  "jais-2",   "minicpm5",   "qwen2",
        "qwen35",       "laguna",         "tekken",      "seed-coder", "ufakzeka", "exaone-moe", "gpt-4o",
        "tiny_aya",     "kimi-k2",        "youtu",       "falcon",     "bloom",    "viking",     "superbpe",
        "deepseek-llm", "deepseek-coder", "deepseek-v3", "spark2_5",   "afmoe",    "chameleon",  "gemma4"}) {
    for (const char* unit : {"a", "A", " ", "\n", " \n", "1", "'", "<", "<sentinel:1", "\xCC\x81",
                             "\xE6\xBC\xA2", "\t ", "A\xCC\x81"}) {
      std::string text;
      while (text.size() < 1 << 15) text += unit;
      for (const char* end : {"", "x"}) {
        INFO(name << ": " << unit);
        const Words words = cut(name, text + end);
        bool empty = false;
        for (const std::string& word : words) empty |= word.empty();
        CHECK_FALSE(empty);
      }
    }
  }
}
