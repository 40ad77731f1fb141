// WordPiece, unigram and Gemma 4 vocabularies with ids worked out by hand. On random texts, these and
// byte-level ones are compared with another implementation (make_kind_vectors.py).
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "places.h"
#include "support/gguf_writer.h"
#include "text/tokenizer/tokenizer.h"

using namespace greta;
using test::GgufWriter;

namespace {

using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;
const std::string kMark = "\xE2\x96\x81";

struct Model {
  std::string file;
  Gguf gguf;
  Tokenizer tokenizer;
  Status status;
  explicit Model(const GgufWriter& writer) : file(writer.file()) {
    Source source;
    status = source.open_memory(file.data(), file.size());
    if (status.ok()) status = gguf.open(std::move(source));
    if (status.ok()) status = tokenizer.open(gguf, Log{});
  }
  Ids encode(std::string_view text, EncodeOptions options = {false, false}) const {
    INFO(error_text());
    REQUIRE(status.ok());
    Ids ids;
    const Status encoded = tokenizer.encode(text, options, &ids);
    INFO(error_text());
    REQUIRE(encoded.ok());
    return ids;
  }
  std::string decode(const Ids& ids) const { return tokenizer.decode(ids.data(), ids.size()); }
};

GgufWriter bert(const Texts& words) {
  Texts tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  std::vector<int32_t> kinds = {3, 2, 3, 3, 3};
  tokens.insert(tokens.end(), words.begin(), words.end());
  kinds.resize(tokens.size(), 1);
  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "bert").value("tokenizer.ggml.tokens", tokens);
  return writer.value("tokenizer.ggml.token_type", kinds);
}

GgufWriter t5(const Texts& pieces, const std::vector<float>& scores) {
  Texts tokens = {"<pad>", "</s>", "<unk>"};
  std::vector<int32_t> kinds = {3, 3, 2};
  std::vector<float> all = {0, 0, 0};
  tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  all.insert(all.end(), scores.begin(), scores.end());
  kinds.resize(tokens.size(), 1);
  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "t5").value("tokenizer.ggml.tokens", tokens);
  return writer.value("tokenizer.ggml.token_type", kinds).value("tokenizer.ggml.scores", all);
}

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t at = 0; at + 1 < hex.size(); at += 2)
    out.push_back(char(std::stoi(hex.substr(at, 2), nullptr, 16)));
  return out;
}

Texts parts(const std::string& line, char by) {
  Texts out(1);
  for (const char c : line) {
    if (c == by)
      out.emplace_back();
    else
      out.back().push_back(c);
  }
  return out;
}

template <class T>
std::vector<T> numbers(const std::string& text) {
  std::vector<T> out;
  std::istringstream in(text);
  for (T each; in >> each;) out.push_back(each);
  return out;
}

GgufWriter vocabulary(const Texts& line) {
  Texts tokens;
  for (const std::string& hex : parts(line[2], ',')) tokens.push_back(from_hex(hex));
  if (line[0] == "bpe") {
    Texts merges;
    for (const std::string& hex : parts(line[3], ',')) merges.push_back(from_hex(hex));
    std::vector<int32_t> kinds = {3};  // <|endoftext|>, which such files name as the unknown token, too
    kinds.resize(tokens.size(), 1);
    GgufWriter out;
    out.value("tokenizer.ggml.model", "gpt2").value("tokenizer.ggml.pre", line[1].c_str());
    out.value("tokenizer.ggml.tokens", tokens).value("tokenizer.ggml.merges", merges);
    out.value("tokenizer.ggml.unknown_token_id", 0u);
    return out.value("tokenizer.ggml.token_type", kinds);
  }
  if (line[0] == "wpm") {
    std::vector<int32_t> kinds = {3, 2, 3, 3};  // [PAD] [UNK] [CLS] [SEP]
    kinds.resize(tokens.size(), 1);
    GgufWriter out;
    out.value("tokenizer.ggml.model", "bert").value("tokenizer.ggml.tokens", tokens);
    out.value("tokenizer.ggml.normalizer.lowercase", line[1] == "1");
    return out.value("tokenizer.ggml.token_type", kinds);
  }
  std::vector<float> scores = numbers<float>(line[3]);
  GgufWriter out =
      t5(Texts(tokens.begin() + 3, tokens.end()), std::vector<float>(scores.begin() + 3, scores.end()));
  std::vector<uint8_t> map;
  for (const char c : from_hex(line[4])) map.push_back(uint8_t(c));
  out.array("tokenizer.ggml.precompiled_charsmap", 0, map);
  return out.value("tokenizer.ggml.remove_extra_whitespaces", line[1] == "1");
}

}  // namespace

TEST_CASE("WordPiece takes the longest piece from the left", "[engine][tokenizer]") {
  const Model model(bert({kMark + "un", "aff", "able", "a", kMark + "a", kMark + "!", kMark + "\xE4\xBD\xA0",
                          kMark + "caf", "e", kMark + "5", kMark + "+"}));
  constexpr int32_t kUnk = 1, kCls = 2, kSep = 3, kMask = 4, kUn = 5, kAff = 6, kAble = 7, kA = 9;
  CHECK(model.tokenizer.kind() == TokenizerKind::Wpm);
  CHECK(model.encode("unaffable") == Ids{kUn, kAff, kAble});
  CHECK(model.encode("UNAffABLE a") == Ids{kUn, kAff, kAble, kA});
  CHECK(model.encode("unaffably") == Ids{kUnk});  // one letter cannot be had: the word is unknown
  CHECK(model.encode("a!!a") == Ids{kA, 10, 10, kA});
  CHECK(model.encode("a\xE4\xBD\xA0 \xE4\xBD\xA0"
                     "a") == Ids{kA, 11, 11, kA});
  CHECK(model.encode("caf\xC3\xA9") == Ids{12, 13});  // é decomposes, its mark goes
  CHECK(model.encode("cafe\xCC\x81") == Ids{12, 13});
  CHECK(model.encode(" \t\n5+\x07\xC2\xAD"
                     "5 ") == Ids{14, 15, 14});  // controls go
  for (const std::string control :
       {"\v", "\f", "\x1C", "\x1D", "\x1E", "\x1F", "\x7F", "\xC2\x85", "\xC2\x80"})
    CHECK(model.encode("un" + control + "aff") ==
          Ids{kUn, kAff});  // also those that are white space elsewhere
  for (const std::string space : {"\t", "\n", "\r", "\xC2\xA0", "\xE2\x80\xA8", "\xE3\x80\x80"})
    CHECK(model.encode("a" + space + "a") == Ids{kA, kA});
  CHECK(model.encode("un" + kMark + "a") == Ids{kUnk});  // no space: the word has no token for this character
  CHECK(model.encode("") == Ids{});
  CHECK(model.encode("a", {true, false}) == Ids{kCls, kA, kSep});
  CHECK(model.encode("a[MASK]a", {false, true}) == Ids{kA, kMask, kA});
  CHECK(model.encode("a[MASK]") == Ids{kA, kUnk, kUnk, kUnk});
  CHECK(model.decode({kUn, kAff, kAble, kA, 10}) == "unaffable a !");
  CHECK(model.tokenizer.piece(kCls, true) == "[CLS]");
  CHECK(model.encode(std::string(99, 'x') + " a") == Ids{kUnk, kA});

  const Model cased(bert({kMark + "A", kMark + "a", "\xC3\xA9", "e", kMark + "A\xC3\xA9"})
                        .value("tokenizer.ggml.normalizer.lowercase", false));
  CHECK(cased.encode("A\xC3\xA9 a") == Ids{9, 6});
  const Model stripped(bert({kMark + "A", kMark + "a", "\xC3\xA9", "e"})
                           .value("tokenizer.ggml.normalizer.lowercase", false)
                           .value("tokenizer.ggml.normalizer.strip_accents", true));
  CHECK(stripped.encode("A\xC3\xA9") == Ids{5, 8});
}

TEST_CASE("a word of more than a hundred characters is unknown in WordPiece", "[engine][tokenizer]") {
  const Model model(bert({kMark + "x", "x"}));
  CHECK(model.encode(std::string(100, 'x')).size() == 100);
  CHECK(model.encode(std::string(101, 'x')) == Ids{1});
}

TEST_CASE("unigram takes the cut of the best sum", "[engine][tokenizer]") {
  // 3 _  4 a  5 b  6 ab  7 _a  8 bb
  const Model model(t5({kMark, "a", "b", "ab", kMark + "a", "bb"}, {-2, -3, -3, -5, -4, -4}));
  CHECK(model.tokenizer.kind() == TokenizerKind::Ugm);
  CHECK(model.encode("a") == Ids{7});       // _a -4, over _ and a -5
  CHECK(model.encode("ab") == Ids{3, 6});   // _ ab -7 and _a b -7: what ends with the longer one
  CHECK(model.encode("abb") == Ids{7, 8});  // _a bb -8
  CHECK(model.encode("a a") == Ids{7, 7});
  CHECK(model.encode("a  a") == Ids{7, 3, 7});
  CHECK(model.encode("azzb") == Ids{7, 2, 5});  // neighbours without a token are one unknown token
  CHECK(model.encode("z") == Ids{3, 2});
  CHECK(model.encode("") == Ids{});
  CHECK(model.encode("a", {true, false}) == Ids{7, 1});  // EOS
  CHECK(model.encode("a</s>a", {false, true}) == Ids{7, 1, 7});
  CHECK(model.decode({7, 8, 3, 5}) == "abb b");

  GgufWriter merging = t5({kMark, "a", "b", "ab", kMark + "a"}, {-2, -3, -3, -5, -4});
  merging.value("tokenizer.ggml.remove_extra_whitespaces", true);
  CHECK(Model(merging).encode("  a   a  ") == Ids{7, 7});
  merging.value("tokenizer.ggml.add_space_prefix", false);
  CHECK(Model(merging).encode("  a   a  ") == Ids{4, 7});
}

TEST_CASE("unigram with byte pieces writes what has no token as bytes", "[engine][tokenizer]") {
  Texts tokens = {"<unk>", "a"};
  std::vector<int32_t> kinds = {2, 1};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.push_back(text);
    kinds.push_back(6);
  }
  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "t5").value("tokenizer.ggml.tokens", tokens);
  writer.value("tokenizer.ggml.token_type", kinds).value("tokenizer.ggml.add_space_prefix", false);
  writer.value("tokenizer.ggml.scores", std::vector<float>(258, -1));
  const Model model(writer);
  CHECK(model.encode("a\xC3\xA9z") == Ids{1, 2 + 0xC3, 2 + 0xA9, 2 + 'z'});
  CHECK(model.decode(model.encode("a\xC3\xA9z")) == "a\xC3\xA9z");
}

TEST_CASE("Gemma 4 merges characters, within lines", "[engine][tokenizer]") {
  Texts tokens = {"<pad>", "<eos>", "<bos>"};
  std::vector<int32_t> kinds = {3, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.push_back(text);
    kinds.push_back(6);
  }
  // 259 _  260 a  261 b  262 _a  263 ab  264 \n  265 \n\n  266 <x>
  for (const std::string& text : Texts{kMark, "a", "b", kMark + "a", "ab", "\n", "\n\n", "<x>"}) {
    tokens.push_back(text);
    kinds.push_back(text == "<x>" ? 4 : 1);
  }
  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "gemma4").value("tokenizer.ggml.tokens", tokens);
  writer.value("tokenizer.ggml.token_type", kinds).value("tokenizer.ggml.add_bos_token", false);
  writer.value("tokenizer.ggml.merges", Texts{kMark + " a", "a b"}).value("tokenizer.ggml.bos_token_id", 2u);
  const Model model(writer);
  CHECK(model.encode("ab") == Ids{263});        // no space before the text
  CHECK(model.encode(" ab") == Ids{262, 261});  // the first merge of the list wins
  CHECK(model.encode("ab ab\n\nb") == Ids{263, 262, 261, 265, 261});
  CHECK(model.encode("\n\n\n") == Ids{264, 264, 264});  // no token of three, and no merges: each alone
  CHECK(model.encode("a\xC3\xA9") == Ids{260, 3 + 0xC3, 3 + 0xA9});
  CHECK(model.encode("a<x> b") == Ids{260, 266, 259, 261});
  CHECK(model.encode("a", {true, false}) == Ids{2, 260});  // whatever add_bos_token says
  CHECK(model.decode({262, 261, 264, 3 + 0xC3, 3 + 0xA9}) == " ab\n\xC3\xA9");
}

TEST_CASE("a file without a vocabulary opens and encodes nothing", "[engine][tokenizer]") {
  const Model model(GgufWriter().value("tokenizer.ggml.model", "none"));
  CHECK(model.tokenizer.size() == 0);
  CHECK(model.encode("", {true, true}) == Ids{});
  Ids ids;
  CHECK(model.tokenizer.encode("a", {}, &ids).code == Code::Unsupported);
  CHECK(model.tokenizer.piece(0, true).empty());
  CHECK(model.decode({0, 1}).empty());
}

TEST_CASE("some special tokens eat the white space before them", "[engine][tokenizer]") {
  GgufWriter writer = test::bpe_vocabulary({"<mask>", "<other>"}, {}, "jina-v2-code");
  const Model jina(writer), gpt2(test::bpe_vocabulary({"<mask>", "<other>"}, {}, "gpt-2"));
  CHECK(jina.encode("a \n<mask> b") == Ids{'a', 256, ' ', 'b'});
  CHECK(jina.encode("  <mask>") == Ids{256});
  CHECK(jina.encode("a <other>") == Ids{'a', ' ', 257});
  CHECK(gpt2.encode("a <mask>") == Ids{'a', ' ', 256});
}

TEST_CASE("random texts have the ids of another implementation", "[engine][tokenizer]") {
  const char* other = std::getenv("GRETA_KIND_VECTORS");  // a longer list
  std::ifstream in(other ? other : GRETA_SOURCE_DIR "/tests/text/tokenizer/kind_vectors.tsv");
  REQUIRE(in);
  std::unique_ptr<Model> model;
  std::string kind;
  uint64_t texts = 0, wrong = 0;
  for (std::string line; std::getline(in, line) && wrong < 10;) {
    const Texts fields = parts(line, '\t');
    if (fields[0] != "text") {
      model = std::make_unique<Model>(vocabulary(fields));
      kind = fields[0] + ' ' + fields[1];
      continue;
    }
    ++texts;
    INFO(kind << ": " << fields[1]);
    const Ids ids = model->encode(from_hex(fields[1])), expected = numbers<int32_t>(fields[2]);
    CHECK(ids == expected);
    wrong += ids != expected;
  }
  CHECK(texts > 400);
}
