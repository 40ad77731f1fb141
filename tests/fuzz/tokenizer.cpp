// Encodes a text with a vocabulary, both made of any bytes. It must not crash, any text must be encoded, ids
// must be within range, and every id must have a piece. On a sound vocabulary, decode(encode(text)) must be
// the text, made valid.
//
// Input: a byte of flags, a byte that chooses the pre-tokenizer, a byte n, then n strings of vocabulary (one
// length byte each, then kind and score bytes), for a unigram vocabulary a charsmap (two bytes of lengths,
// then units, each after a byte that says its place, and replacements), then the text. With an n of 0 the
// text meets a sound vocabulary.
#include "text/tokenizer/tokenizer.h"

#include <cstdlib>
#include <cstring>
#include <iterator>

#include "gguf_text.h"

using namespace greta;

namespace {

struct Reader {
  const uint8_t* at;
  size_t left;
  uint8_t byte() { return left ? (--left, *at++) : 0; }
  std::string text(size_t bytes) {
    bytes = bytes < left ? bytes : left;
    std::string out(reinterpret_cast<const char*>(at), bytes);
    at += bytes;
    left -= bytes;
    return out;
  }
};

struct Words {
  std::vector<std::string> tokens, merges;
  std::vector<float> scores;
  std::vector<int32_t> kinds;
  void add(std::string_view text, float score, int32_t kind) {
    tokens.emplace_back(text);
    scores.push_back(score);
    kinds.push_back(kind);
  }
};

void add_sound(bool marks, Words* words) {
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    char text[8];
    const bool visible = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    if (marks)
      snprintf(text, sizeof text, "<0x%02X>", byte);
    else
      text[encode_utf8(visible ? byte : next++, text)] = 0;
    words->add(text, 0, marks ? 6 : 1);
  }
  for (const char* text : {"t", "h", "e", "th", "the", "in", "ing", "\xE2\x96\x81", "\xE2\x96\x81the"})
    words->add(text, -1, 1);
  words->add("[UNK]", 0, 2);
  words->merges = {"t h", "i n", "th e", "in g"};
}

void add_any(Reader* reader, uint32_t count, Words* words) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t bytes = reader->byte(), kind = reader->byte();
    float score = float(reader->byte()) - 128;
    if (score == 127) score = __builtin_nanf("");
    words->add(reader->text(bytes % 12), score, kind % 8);
    words->merges.push_back(reader->text(bytes / 32));
  }
}

constexpr const char* kModels[] = {"gpt2", "llama", "bert", "t5", "gemma4"};
constexpr const char* kRules[] = {
    "llama-bpe", "gpt-2",        "qwen2",          "?",      "default",  "starcoder",  "jais-2",
    "minicpm5",  "laguna",       "qwen35",         "tekken", "ufakzeka", "seed-coder", "exaone-moe",
    "gpt-4o",    "tiny_aya",     "kimi-k2",        "youtu",  "afmoe",    "spark2_5",   "deepseek-v3",
    "falcon",    "deepseek-llm", "deepseek-coder", "bloom",  "viking",   "superbpe",   "chameleon",
    "gemma4",    "sarvam-moe",   "jina-v2-code"};

// A charsmap of 256 units, some of which are any that stay among these, and of any replacements. At times it
// is the bytes of the input instead.
std::vector<uint8_t> any_charsmap(Reader* reader) {
  const uint8_t count = reader->byte(), replacements = reader->byte();
  std::string map;
  if (count % 8) {
    uint32_t units[256] = {};
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t& unit = units[reader->byte()];
      for (uint32_t byte = 0; byte < 4; ++byte) unit = unit << 8 | reader->byte();
      unit &= unit >> 31 ? 0x800000FFu : 0x3FDFFu;  // a value, or a node whose base is below 256
    }
    GgufText::put<uint32_t>(&map, sizeof units);
    for (const uint32_t unit : units) GgufText::put<uint32_t>(&map, unit);
    map += reader->text(replacements);
    map.push_back(0);
  } else {
    map = reader->text(count * 4u + replacements);
  }
  return {map.begin(), map.end()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Reader reader{data, size};
  const uint8_t flags = reader.byte();
  const std::string_view rule = kRules[reader.byte() % std::size(kRules)];
  const uint32_t count = reader.byte();
  const std::string_view model = kModels[(flags & 7) % std::size(kModels)];
  const bool marks = model != "gpt2" || rule == "gemma4" || rule == "sarvam-moe";
  const bool copies = model != "bert" && model != "t5";  // decoding gives the text back
  Words words;
  if (count == 0 || flags & 8) add_sound(marks, &words);
  add_any(&reader, count, &words);

  GgufText file;
  file.text("tokenizer.ggml.model", model);
  file.text("tokenizer.ggml.pre", rule);
  file.texts("tokenizer.ggml.tokens", words.tokens);
  file.texts("tokenizer.ggml.merges", words.merges);
  file.numbers("tokenizer.ggml.scores", 6, words.scores);
  if (!(flags & 16) || count == 0) file.numbers("tokenizer.ggml.token_type", 5, words.kinds);
  if (model == "t5") file.numbers("tokenizer.ggml.precompiled_charsmap", 0, any_charsmap(&reader));
  file.flag("tokenizer.ggml.remove_extra_whitespaces", flags & 128);
  const std::string bytes = file.bytes(), text = reader.text(reader.left);

  Source source;
  Gguf gguf;
  Tokenizer tokenizer;
  if (!source.open_memory(bytes.data(), bytes.size()).ok() || !gguf.open(std::move(source)).ok())
    __builtin_trap();
  if (!tokenizer.open(gguf, Log{}).ok()) return 0;
  std::vector<int32_t> ids;
  uint64_t steps = 0;
  if (!tokenizer.encode(text, {(flags & 32) != 0, (flags & 64) != 0, &steps}, &ids).ok()) __builtin_trap();
  Utf8Stream stream;
  std::string streamed;
  for (const int32_t id : ids) {
    if (id < 0 || uint32_t(id) >= tokenizer.size()) __builtin_trap();
    stream.push(tokenizer.piece(id), &streamed);
    if (!is_valid_utf8(streamed)) __builtin_trap();
  }
  stream.flush(&streamed);
  if (!is_valid_utf8(streamed)) __builtin_trap();
  const std::string decoded = tokenizer.decode(ids.data(), ids.size());
  if (!is_valid_utf8(decoded)) __builtin_trap();
  if (steps > 700 * (valid_utf8(text).size() * 600 + 16)) __builtin_trap();
  if (count != 0 || !copies) return 0;
  // The space mark itself reads as a space, [UNK] is cut out where control tokens are, and <mask> strips.
  const bool altered = (marks && text.find("\xE2\x96\x81") != text.npos) || text.find("[UNK]") != text.npos;
  if (!altered && decoded != valid_utf8(text)) __builtin_trap();
  return 0;
}
