// The parts that vocabularies of SentencePiece's kind share: scores, marks for spaces, and pieces for bytes.
#include <algorithm>

#include "text/tokenizer/encoders.h"

namespace greta {

Status read_scores(const Gguf& gguf, const Vocab& vocab, PackedArray<float>* out) {
  GRETA_TRY(gguf.require("tokenizer.ggml.scores"));
  GRETA_TRY(gguf.get_f32_array("tokenizer.ggml.scores", out));
  if (out->count == vocab.size()) return {};
  return fail(Code::File, "tokenizer.ggml.scores has %llu values, expected %u, one for each token",
              (unsigned long long)out->count, vocab.size());
}

int byte_piece(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  const auto is_small = [](char c) { return c >= 'a'; };
  const int high = hex_digit(text[3]), low = hex_digit(text[4]);
  return high < 0 || low < 0 || is_small(text[3]) || is_small(text[4]) ? -1 : high * 16 + low;
}

Status find_byte_pieces(const Vocab& vocab, int32_t (&out)[256]) {
  std::fill(std::begin(out), std::end(out), kNoToken);
  for (uint32_t id = 0; id < vocab.size(); ++id) {
    if (vocab.kind(id) != TokenKind::Byte && vocab.has_kinds()) continue;
    const int byte = byte_piece(vocab.text(id));
    if (byte >= 0 && out[byte] == kNoToken) out[byte] = int32_t(id);
    if (byte < 0 && vocab.kind(id) == TokenKind::Byte)
      return fail(Code::File, "token %u is marked as a byte and reads %s, expected <0x00> to <0xFF>", id,
                  Quoted(vocab.text(id)).c_str());
  }
  return {};
}

bool Substitute::has_bytes(std::string_view text) const {
  return std::all_of(text.begin(), text.end(), [&](char c) { return bytes[uint8_t(c)] != kNoToken; });
}

void Substitute::append(std::string_view text, std::vector<int32_t>* out, EncodeNotes* notes) const {
  if (has_bytes(text))
    for (const char c : text) out->push_back(bytes[uint8_t(c)]);
  else if (unknown != kNoToken)
    out->push_back(unknown);
  else
    notes->leave_out(text);
}

void join_unknown(int32_t unknown, size_t start, std::vector<int32_t>* out) {
  if (unknown == kNoToken) return;
  const auto both = [&](int32_t a, int32_t b) { return a == unknown && b == unknown; };
  out->erase(std::unique(out->begin() + ptrdiff_t(start), out->end(), both), out->end());
}

bool crosses_words(std::string_view token) {
  for (size_t at = token.find(kSpaceMarkText, 1); at != token.npos; at = token.find(kSpaceMarkText, at + 1))
    if (at < 3 || token.substr(at - 3, 3) != kSpaceMarkText) return true;
  return false;
}

bool has_words_apart(const Vocab& vocab) {
  for (uint32_t id = 0; id < vocab.size(); ++id) {
    const TokenKind kind = vocab.kind(id);
    if (kind != TokenKind::Control && kind != TokenKind::Unknown && crosses_words(vocab.text(id)))
      return false;
  }
  return true;
}

// Bytes of a space or mark at text[at]; 0 if none stands there.
static uint32_t space_bytes(std::string_view text, size_t at) {
  if (text[at] == ' ') return 1;
  return text[at] == kSpaceMarkText[0] && text.substr(at, 3) == kSpaceMarkText ? 3 : 0;
}

size_t marked_word_end(std::string_view text, size_t from) {
  size_t at = from;
  while (at < text.size() && space_bytes(text, at)) at += space_bytes(text, at);
  while (at < text.size() && !space_bytes(text, at)) ++at;
  return at;
}

void mark_spaces(std::string_view word, std::string* out) {
  out->clear();
  for (const char c : word) c == ' ' ? out->append(kSpaceMarkText) : out->append(1, c);
}

}  // namespace greta
