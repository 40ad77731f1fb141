// A vocabulary and a text, both made of any bytes. What must hold: no crash, ids within range, pieces
// for every id; and on a sound vocabulary decode(encode(text)) is the text, made valid.
//
// Input: a byte of flags, a byte n, then n strings of vocabulary (one length byte each, then kind and
// score bytes), then the text. With an n of 0 the text meets a sound vocabulary.
#include <cstdlib>
#include <cstring>

#include "engine/tokenizer.h"

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

struct GgufText {
  std::string values;
  uint64_t count = 0;
  template <class T>
  static void put(std::string* to, T number) {
    to->append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  static void put_text(std::string* to, std::string_view text) {
    put<uint64_t>(to, text.size());
    to->append(text);
  }
  void key(std::string_view name, uint32_t type) {
    put_text(&values, name);
    put(&values, type);
    ++count;
  }
  void text(std::string_view name, std::string_view value) {
    key(name, 8);
    put_text(&values, value);
  }
  void texts(std::string_view name, const std::vector<std::string>& list) {
    key(name, 9);
    put<uint32_t>(&values, 8);
    put<uint64_t>(&values, list.size());
    for (const std::string& each : list) put_text(&values, each);
  }
  template <class T>
  void numbers(std::string_view name, uint32_t element, const std::vector<T>& list) {
    key(name, 9);
    put(&values, element);
    put<uint64_t>(&values, list.size());
    for (const T each : list) put(&values, each);
  }
  std::string bytes() const {
    std::string out = "GGUF";
    put<uint32_t>(&out, 3);
    put<uint64_t>(&out, 0);
    put<uint64_t>(&out, count);
    return out + values;
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

void add_sound(bool spm, Words* words) {
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    char text[8];
    const bool visible = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    if (spm)
      snprintf(text, sizeof text, "<0x%02X>", byte);
    else
      text[encode_utf8(visible ? byte : next++, text)] = 0;
    words->add(text, 0, spm ? 6 : 1);
  }
  for (const char* text : {"th", "the", "in", "ing", "\xE2\x96\x81", "\xE2\x96\x81the"})
    words->add(text, -1, 1);
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Reader reader{data, size};
  const uint8_t flags = reader.byte();
  const uint32_t count = reader.byte();
  const bool spm = flags & 1;
  Words words;
  if (count == 0 || flags & 2) add_sound(spm, &words);
  add_any(&reader, count, &words);

  GgufText file;
  const char* const rules[] = {"llama-bpe", "gpt-2", "qwen2", "?"};
  file.text("tokenizer.ggml.model", spm ? "llama" : "gpt2");
  file.text("tokenizer.ggml.pre", rules[flags >> 2 & 3]);
  file.texts("tokenizer.ggml.tokens", words.tokens);
  file.texts("tokenizer.ggml.merges", words.merges);
  file.numbers("tokenizer.ggml.scores", 6, words.scores);
  if (!(flags & 16) || count == 0) file.numbers("tokenizer.ggml.token_type", 5, words.kinds);
  const std::string bytes = file.bytes(), text = reader.text(reader.left);

  Source source;
  Gguf gguf;
  Tokenizer tokenizer;
  if (!source.open_memory(bytes.data(), bytes.size()).ok() || !gguf.open(std::move(source)).ok())
    __builtin_trap();
  if (!tokenizer.open(gguf, Log{}).ok()) return 0;
  std::vector<int32_t> ids;
  const Status status = tokenizer.encode(text, {(flags & 32) != 0, (flags & 64) != 0}, &ids);
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
  if (count == 0 && !status.ok()) __builtin_trap();
  // The space mark itself reads as a space in SPM.
  if (count == 0 && !(spm && text.find("\xE2\x96\x81") != text.npos) && decoded != valid_utf8(text))
    __builtin_trap();
  return 0;
}
