// Reads any bytes as a GBNF grammar or a JSON schema, then walks through it. It must not crash. A mask must
// have the tokens whose bytes can come next and no others. A text must be taken alike at once and in pieces.
// A text that may end under a schema's grammar must be JSON.
//
// Input: a byte of flags (1: a schema), the grammar, a zero byte, then bytes that choose where the walk goes.
#include "text/grammar/grammar.h"

#include <cstring>

#include "gguf_text.h"
#include "text/grammar/json_schema.h"
#include "text/jinja/jinja.h"

using namespace greta;

namespace {

// A vocabulary of 256 bytes, words that share beginnings, two that are the same, one that ends an answer, and
// a control token.
struct Vocabulary {
  std::string file;
  Gguf gguf;
  Tokenizer tokenizer;
  VocabTrie trie;
  Vocabulary() {
    std::vector<std::string> texts = {"<unk>", "<s>", "</s>"};
    std::vector<int32_t> kinds = {2, 3, 3};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      char text[8];
      snprintf(text, sizeof text, "<0x%02X>", byte);
      texts.push_back(text);
      kinds.push_back(6);
    }
    for (const char* text :
         {"a", "ab", "abc", "\"", "\",\"", "{\"", "\":", "}", "]}", "12", "true", "é", "\xE2\x82\xAC"}) {
      texts.push_back(text);
      kinds.push_back(1);
    }
    std::vector<float> scores;
    for (size_t i = 0; i < texts.size(); ++i) scores.push_back(-float(i));
    GgufText out;
    out.text("tokenizer.ggml.model", "llama");
    out.texts("tokenizer.ggml.tokens", texts);
    out.numbers("tokenizer.ggml.token_type", 5, kinds);
    out.numbers("tokenizer.ggml.scores", 6, scores);
    out.key("tokenizer.ggml.eos_token_id", 4);
    GgufText::put<uint32_t>(&out.values, 2);
    file = out.bytes();
    Source source;
    if (!source.open_memory(file.data(), file.size()).ok() || !gguf.open(std::move(source)).ok() ||
        !tokenizer.open(gguf, Log{}).ok())
      __builtin_trap();
    trie.build(tokenizer);
  }
};

// Compares the mask with a walk for each token. Tokens that the grammar itself names have no bytes to
// compare.
void check_mask(const Vocabulary& v, const GrammarMatcher& at, std::span<const uint64_t> bits) {
  for (uint32_t id = 0; id < v.tokenizer.size(); ++id) {
    GrammarMatcher probe = at;
    const Status status = probe.push_token(int32_t(id), v.tokenizer.piece(int32_t(id)));
    if (status.code == Code::Unsupported || v.tokenizer.is_end(int32_t(id))) continue;
    if (status.ok() != bool(bits[id / 64] >> (id % 64) & 1)) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Vocabulary v;
  if (size < 2) return 0;
  const bool is_schema = data[0] & 1;
  const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t zero = std::min(input.find('\0'), input.size());
  std::string gbnf(input.substr(0, zero));
  const std::string_view choices = input.substr(std::min(zero + 1, input.size())).substr(0, 64);
  if (is_schema && !json_schema_grammar(input.substr(0, zero), {}, &gbnf).ok()) return 0;
  std::shared_ptr<const Grammar> grammar;
  if (!parse_grammar(gbnf, "root", &v.tokenizer, &grammar).ok()) return 0;
  GrammarMatcher matcher(grammar);
  if (!matcher.reset().ok()) return 0;
  std::vector<uint64_t> bits((v.tokenizer.size() + 63) / 64);
  std::string text;
  bool plain = true;  // all by bytes
  for (size_t i = 0; i < choices.size(); ++i) {
    if (!matcher.mask(v.trie, bits).ok()) return 0;
    if (i % 16 == 0) check_mask(v, matcher, bits);
    std::vector<int32_t> allowed;
    for (uint32_t id = 0; id < v.tokenizer.size(); ++id)
      if (bits[id / 64] >> (id % 64) & 1) allowed.push_back(int32_t(id));
    if (allowed.empty()) break;
    const int32_t token = allowed[uint8_t(choices[i]) % allowed.size()];
    const std::string piece = v.tokenizer.piece(token);
    plain = plain && !piece.empty() && gbnf.find('<') == gbnf.npos;
    const Status status = matcher.push_token(token, piece);
    if (status.code == Code::Unsupported) return 0;
    if (!status.ok()) __builtin_trap();
    text += piece;
    jinja::Value value;
    if (is_schema && matcher.may_end() && !jinja::parse_json(text, &value).ok()) __builtin_trap();
  }
  if (!plain) return 0;
  GrammarMatcher whole(grammar);
  if (!whole.reset().ok()) __builtin_trap();
  const Status status = whole.push(text);
  if (status.code == Code::Unsupported) return 0;  // too much for one token
  if (!status.ok() || whole.may_end() != matcher.may_end()) __builtin_trap();
  return 0;
}
