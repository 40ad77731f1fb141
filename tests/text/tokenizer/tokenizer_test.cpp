// Every rule of tokenizer.h, on vocabularies that are small enough to read.
#include "text/tokenizer/tokenizer.h"

#include <catch2/catch_test_macros.hpp>

#include "support/gguf_writer.h"

using namespace greta;
using test::bpe_vocabulary;
using test::GgufWriter;
using test::spm_vocabulary;

namespace {

using Ids = std::vector<int32_t>;
const std::string kMark = "\xE2\x96\x81";

struct Model {
  std::string file, log;
  Gguf gguf;
  Tokenizer tokenizer;
  explicit Model(const GgufWriter& writer) : file(writer.file()) {
    Source source;
    Status status = source.open_memory(file.data(), file.size());
    if (status.ok()) status = gguf.open(std::move(source));
    const auto write = [](void* user, uint32_t, const char* text) {
      *static_cast<std::string*>(user) += text;
    };
    if (status.ok()) status = tokenizer.open(gguf, Log{write, &log});
    INFO(error_text());
    REQUIRE(status.ok());
  }
  Ids encode(std::string_view text, EncodeOptions options = {}) const {
    Ids ids;
    const Status status = tokenizer.encode(text, options, &ids);
    INFO(error_text());
    REQUIRE(status.ok());
    return ids;
  }
  Ids plain(std::string_view text) const { return encode(text, {false, false}); }
  std::string decode(const Ids& ids) const { return tokenizer.decode(ids.data(), ids.size()); }
};

// Pieces 259 on. The merge of "b" and "c" is better than that of "a" and "b".
GgufWriter letters() {
  return spm_vocabulary({kMark, "a", "b", "c", "ab", "bc", kMark + "a", kMark + "ab", "abc"},
                        {-9, -9, -9, -9, -3, -2, -4, -5, -8});
}
constexpr int32_t kSpace = 259, kA = 260, kB = 261, kC = 262, kAb = 263, kBc = 264, kSpaceA = 265,
                  kSpaceAb = 266;

int32_t byte_id(uint8_t byte) { return 3 + byte; }

}  // namespace

TEST_CASE("SPM merges the best score first, the leftmost on a tie", "[engine][tokenizer]") {
  const Model model(letters());
  CHECK(model.encode("") == Ids{1});
  CHECK(model.plain("") == Ids{});
  CHECK(model.encode("a") == Ids{1, kSpaceA});
  CHECK(model.plain("bc") == Ids{kSpace, kBc});
  CHECK(model.plain("abc") == Ids{kSpaceA, kBc});  // bc at -2, then _a at -4
  CHECK(model.plain("ab") == Ids{kSpaceAb});       // ab at -3, then _ab at -5
  CHECK(model.plain("ab ab") == Ids{kSpaceAb, kSpaceAb});
  CHECK(model.plain("cabab") == Ids{kSpace, kC, kAb, kAb});
  CHECK(model.plain("\xE2\x96\x81"
                    "a") == Ids{kSpace, kSpaceA});  // the mark itself reads as a space
  CHECK(model.decode(model.plain("ab ab")) == "ab ab");
  CHECK(model.decode(model.plain("  ab")) == "  ab");
}

TEST_CASE("of equal pairs the leftmost is merged", "[engine][tokenizer]") {
  const Model spm(spm_vocabulary({kMark, "a", "aa"}, {0, 0, 0}));
  CHECK(spm.plain("aaaaa") == Ids{kSpace, 261, 261, kA});
  const Model bpe(bpe_vocabulary({"aa"}, {"a a"}, "gpt-2"));
  CHECK(bpe.plain("aaaaa") == Ids{256, 256, 'a'});
}

TEST_CASE("SPM writes what has no piece as bytes, then as the unknown token", "[engine][tokenizer]") {
  const Model model(letters());
  CHECK(model.plain("\xC3\xA9") == Ids{kSpace, byte_id(0xC3), byte_id(0xA9)});
  CHECK(model.plain("a\xFF") == Ids{kSpaceA, byte_id(0xEF), byte_id(0xBF), byte_id(0xBD)});  // U+FFFD
  CHECK(model.decode(model.plain("\xC3\xA9")) == "\xC3\xA9");
  CHECK(model.plain(std::string_view("\0", 1)) == Ids{kSpace, byte_id(0)});
  CHECK(model.tokenizer.piece(byte_id('\n')) == "\n");

  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "llama").value("tokenizer.ggml.tokens", {"<unk>", kMark, "a"});
  writer.value("tokenizer.ggml.scores", std::vector<float>{0, 0, 0});
  const Model no_unknown(writer);
  CHECK(no_unknown.plain("a\xC3\xA9") == Ids{1, 2});  // left out
  writer.value("tokenizer.ggml.token_type", std::vector<int32_t>{2, 1, 1});
  const Model unknown(writer);
  CHECK(unknown.plain("a\xC3\xA9") == Ids{1, 2, 0});
  CHECK(unknown.plain("\xC3\xA9\xC3\xA9xa\xC3\xA9") == Ids{1, 0, 2, 0});  // a run is one
  CHECK(unknown.tokenizer.piece(0).empty());
  CHECK(unknown.tokenizer.piece(0, true) == "<unk>");
}

TEST_CASE("SPM cut at words gives what uncut text gives", "[engine][tokenizer]") {
  // One token that spans words turns the cutting off; with a score too low to be chosen for this
  // text, everything else must stay the same.
  GgufWriter spanning =
      spm_vocabulary({kMark, "a", "b", "c", "ab", "bc", kMark + "a", kMark + "ab", "abc", "q" + kMark},
                     {-9, -9, -9, -9, -3, -2, -4, -5, -8, -99});
  const Model cut(letters()), whole(spanning);
  uint32_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i)
      text += "abc  "[(state = state * 1664525 + 1013904223) >> 16 & 3 ? (state >> 20) % 5 : 3];
    CHECK(cut.plain(text) == whole.plain(text));
    CHECK(cut.decode(cut.plain(text)) == text);
  }
  CHECK(whole.plain("q b") == Ids{kSpace, 268, kB});
}

TEST_CASE("a not-a-number among the scores comes last", "[engine][tokenizer]") {
  const float nan = __builtin_nanf("");
  const Model model(spm_vocabulary({kMark, "a", "b", "ab", "ba"}, {0, 0, 0, nan, -5}));
  CHECK(model.plain("aba") == Ids{kSpace, kA, 263});  // ba at -5 before ab
}

TEST_CASE("BOS, EOS and the space prefix follow the file", "[engine][tokenizer]") {
  const Model standard(letters());
  CHECK(standard.tokenizer.bos() == 1);
  CHECK(standard.tokenizer.eos() == 2);
  CHECK(standard.tokenizer.unknown() == 0);
  CHECK(standard.tokenizer.ends() == Ids{2});
  CHECK(standard.tokenizer.is_end(2));
  CHECK_FALSE(standard.tokenizer.is_end(1));

  GgufWriter writer = letters();
  writer.value("tokenizer.ggml.add_bos_token", false).value("tokenizer.ggml.add_eos_token", true);
  writer.value("tokenizer.ggml.add_space_prefix", false).value("tokenizer.ggml.bos_token_id", uint32_t(kA));
  writer.scalar("tokenizer.ggml.padding_token_id", 5, int32_t(-1));
  writer.value("tokenizer.ggml.eot_token_id", UINT32_MAX).value("tokenizer.ggml.eom_token_id", uint32_t(kC));
  const Model model(writer);
  CHECK(model.encode("ab") == Ids{kAb, 2});
  CHECK(model.encode("ab", {false, false}) == Ids{kAb});
  CHECK(model.decode({kSpaceA}) == " a");
  CHECK(model.tokenizer.bos() == kA);
  CHECK(model.tokenizer.padding() == kNoToken);
  CHECK(model.tokenizer.eot() == kNoToken);
  CHECK(model.tokenizer.ends() == Ids{2, kC});
}

TEST_CASE("BPE merges in the order of the list", "[engine][tokenizer]") {
  const std::string space = "\xC4\xA0";  // the alphabet's letter for a space
  const Model model(bpe_vocabulary({"he", "ll", "hell", "hello", space + "h", "lo", "\xC3\x83\xC2\xA9"},
                                   {"l l", "h e", "he ll", "hell o", space + " h", "\xC3\x83 \xC2\xA9"},
                                   "llama-bpe"));
  CHECK(model.plain("hello") == Ids{259});
  CHECK(model.plain("hell") == Ids{258});
  CHECK(model.plain("llo") == Ids{257, 'o'});
  CHECK(model.plain("lo") == Ids{261});  // a whole word, though no merge makes it
  CHECK(model.plain("helo") == Ids{256, 'l', 'o'});
  CHECK(model.plain(" hello") == Ids{' ', 259});  // "h e" comes before the space takes the h
  CHECK(model.plain(" ho") == Ids{260, 'o'});
  CHECK(model.plain("\xC3\xA9") == Ids{262});
  CHECK(model.decode(model.plain("\xC3\xA9 hello\n")) == "\xC3\xA9 hello\n");
  CHECK(model.plain("\xFF") == Ids{0xEF, 0xBF, 0xBD});
  CHECK(model.tokenizer.piece(262) == "\xC3\xA9");
  CHECK(model.log.find("BOS") != std::string::npos);  // llama-bpe wants one, the file names none
  CHECK(model.encode("hello") == Ids{259});
}

// Short words are merged in one way and long ones in another. Both give what the definition says.
TEST_CASE("BPE of words of any length is the plain procedure", "[engine][tokenizer]") {
  const std::vector<std::string> merges = {"a b", "b c",    "ab c", "c a", "bc a",
                                           "a a", "abc ab", "aa a", "ca b"};
  std::vector<std::string> tokens;
  for (std::string merge : merges) {
    merge.erase(merge.find(' '), 1);
    tokens.push_back(merge);
  }
  const Model model(bpe_vocabulary(tokens, merges, "gpt-2"));
  uint32_t state = 1;
  for (size_t length = 1; length < 120; ++length) {
    std::string text;
    while (text.size() < length) text += "abca"[(state = state * 1664525 + 1013904223) >> 20 & 3];
    std::vector<std::string> pieces;
    for (const char c : text) pieces.emplace_back(1, c);
    for (size_t rank = 0; rank < merges.size(); ++rank) {
      for (size_t i = 0; i + 1 < pieces.size(); ++i) {
        if (pieces[i] + " " + pieces[i + 1] != merges[rank]) continue;
        pieces[i] += pieces[i + 1];
        pieces.erase(pieces.begin() + ptrdiff_t(i) + 1);
        rank = size_t(-1);  // from the best merge again
        break;
      }
    }
    Ids expected;
    for (const std::string& piece : pieces) expected.push_back(model.tokenizer.find(piece));
    INFO(text);
    CHECK(model.plain(text) == expected);
  }
}

TEST_CASE("special tokens are taken out of the text, the longest first", "[engine][tokenizer]") {
  GgufWriter writer =
      bpe_vocabulary({"<|eot|>", "<tool>", "<tool>x", "<|eot|><|eot|>", "<|bos|>"}, {}, "gpt-2");
  writer.value("tokenizer.ggml.bos_token_id", 260u).value("tokenizer.ggml.add_bos_token", true);
  const Model model(writer);
  const int32_t eot = 256, tool = 257, two = 259, bos = 260;
  CHECK(model.encode("a<tool>b") == Ids{bos, 'a', tool, 'b'});
  CHECK(model.encode("<|eot|>", {false, true}) == Ids{eot});
  CHECK(model.plain("<|eot|>") == Ids{'<', '|', 'e', 'o', 't', '|', '>'});
  CHECK(model.encode("a<|eot|><|eot|>b<|eot|>", {false, true}) == Ids{'a', two, 'b', eot});
  CHECK(model.encode("<tool><|eot|", {false, true}) == Ids{tool, '<', '|', 'e', 'o', 't', '|'});
  CHECK(model.encode("<too<tool>l>", {false, true}) == Ids{'<', 't', 'o', 'o', tool, 'l', '>'});
  CHECK(model.encode("<|bos|>a", {true, true}) == Ids{bos, bos, 'a'});  // both: what was asked for
  CHECK(model.tokenizer.piece(eot).empty());
  CHECK(model.tokenizer.piece(eot, true) == "<|eot|>");
  CHECK(model.tokenizer.piece(tool) == "<tool>");
  CHECK(model.tokenizer.find("<|eot|>") == eot);
  CHECK(model.tokenizer.find("<|none|>") == kNoToken);
}

TEST_CASE("after a special token SPM text gets its space again", "[engine][tokenizer]") {
  GgufWriter writer = spm_vocabulary({kMark, "a", kMark + "a", "<sep>"}, {0, 0, -1, 0});
  std::vector<int32_t> kinds(263, 1);
  for (int32_t id = 0; id < 259; ++id) kinds[size_t(id)] = id == 0 ? 2 : id < 3 ? 3 : 6;
  kinds[262] = 4;
  GgufWriter typed;
  typed.value("tokenizer.ggml.model", "llama").value("general.name", "Some Phi-3 model");
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.push_back(text);
  }
  for (const std::string& text : {kMark, std::string("a"), kMark + "a", std::string("<sep>")})
    tokens.push_back(text);
  typed.value("tokenizer.ggml.tokens", tokens).value("tokenizer.ggml.token_type", kinds);
  typed.value("tokenizer.ggml.scores", std::vector<float>(263, -1.0f));
  const Model phi3(typed);
  CHECK(phi3.plain("a<sep>a") == Ids{261, 262, 261});
  CHECK(phi3.plain("<sep> \n a") == Ids{262, 261});  // Phi-3's special tokens eat white space
  CHECK(phi3.encode("</s><s>a", {false, true}) == Ids{2, 1, 261});
  CHECK(phi3.encode("<s> a", {false, true}) == Ids{1, 259, 261});  // but not the BOS token
}

TEST_CASE("tokens that end generation are known by their text too", "[engine][tokenizer]") {
  const Model model(bpe_vocabulary({"<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|other|>"}, {}, "qwen2"));
  CHECK(model.tokenizer.ends() == Ids{256, 257, 258});
  // Where a turn ends in <|return|> or <|call|>, <|end|> ends only a message.
  CHECK(Model(bpe_vocabulary({"<|end|>", "<|return|>", "<|call|>"}, {}, "gpt-2")).tokenizer.ends() ==
        Ids{257, 258});
  CHECK(Model(bpe_vocabulary({"<|end|>", "<|return|>"}, {}, "gpt-2")).tokenizer.ends() == Ids{256, 257});
}

TEST_CASE("an unknown pre-tokenizer is said and replaced", "[engine][tokenizer]") {
  const Model model(bpe_vocabulary({}, {}, "no-such-rule"));
  CHECK(model.log.find("\"no-such-rule\" is not known") != std::string::npos);
  CHECK(model.plain("ab") == Ids{'a', 'b'});
}

TEST_CASE("a megabyte without a break is no trouble", "[engine][tokenizer]") {
  const Model spm(letters()), bpe(bpe_vocabulary({"aa", "aaaa"}, {"a a", "aa aa"}, "llama-bpe"));
  const std::string word(1 << 20, 'a');
  CHECK(spm.plain(word).size() == word.size());
  CHECK(bpe.plain(word).size() == word.size() / 4);
  CHECK(bpe.plain(std::string(1 << 20, ' ')).size() == 1 << 20);
  CHECK(bpe.plain(std::string(1 << 20, '<')).size() == 1 << 20);
}
