// Tokenizer: what both kinds share: special tokens, BOS and EOS, and the way back to text.
#include "engine/tokenizer.h"

#include <algorithm>
#include <cctype>

#include "engine/tokenizer_encoders.h"

namespace greta {
namespace {

// Tokens that end a turn in the models that have them.
constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<turn|>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
};

bool contains_phi3(std::string_view name) {
  std::string lower;
  for (const char c : name) lower.push_back(char(std::tolower(uint8_t(c))));
  return lower.find("phi-3") != lower.npos || lower.find("phi3") != lower.npos;
}

}  // namespace

Status Tokenizer::open(const Gguf& gguf, const Log& log) {
  std::string_view model, name;
  GRETA_TRY(gguf.require("tokenizer.ggml.model"));
  GRETA_TRY(gguf.get_string("tokenizer.ggml.model", &model));
  if (model != "llama" && model != "gpt2")
    return fail(Code::Unsupported, "%s: tokenizer %s, expected \"llama\" or \"gpt2\"", gguf.name(),
                Quoted(model).c_str());
  spm_ = model == "llama";
  GRETA_TRY(within(vocab_.open(gguf), "%s", gguf.name()));
  GRETA_TRY(within(read_special_ids(gguf), "%s", gguf.name()));
  if (spm_) {
    add_bos_ = add_space_prefix_ = true;
    GRETA_TRY(within(make_spm_encoder(gguf, vocab_, unknown_, &encoder_), "%s", gguf.name()));
  } else {
    GRETA_TRY(within(make_bpe_encoder(gguf, vocab_, unknown_, log, &add_bos_, &encoder_), "%s", gguf.name()));
  }
  GRETA_TRY(gguf.get_bool("tokenizer.ggml.add_bos_token", &add_bos_));
  GRETA_TRY(gguf.get_bool("tokenizer.ggml.add_eos_token", &add_eos_));
  GRETA_TRY(gguf.get_bool("tokenizer.ggml.add_space_prefix", &add_space_prefix_));
  if (add_bos_ && bos_ == kNoToken)
    log(LogLevel::Warning, "%s: text should start with a BOS token, but the file names none", gguf.name());
  GRETA_TRY(gguf.get_string("general.name", &name));
  strip_after_special_ = contains_phi3(name);
  find_ends();
  index_specials();
  return {};
}

// ---- special tokens ---------------------------------------------------------------------------

// An id of -1, as either a signed or an unsigned 32-bit number, means none.
Status Tokenizer::read_special_id(const Gguf& gguf, const char* name, int32_t* out) const {
  const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
  const GgufValue* value = gguf.find(key);
  if (!value) return {};
  *out = kNoToken;
  if (value->type == ValueType::I32 && load_unaligned<int32_t>(value->data) == -1) return {};
  uint32_t id = 0;
  GRETA_TRY(gguf.get_u32(key, &id));
  if (id == UINT32_MAX) return {};
  if (id >= vocab_.size())
    return fail(Code::File, "%s is %u, expected an id below the %u of the vocabulary", key.c_str(), id,
                vocab_.size());
  *out = int32_t(id);
  return {};
}

Status Tokenizer::read_special_ids(const Gguf& gguf) {
  if (spm_) {  // SentencePiece's own places, if these tokens look the part
    const auto at = [&](uint32_t id, TokenKind kind) {
      return id < vocab_.size() && vocab_.kind(id) == kind ? int32_t(id) : kNoToken;
    };
    unknown_ = at(0, TokenKind::Unknown);
    bos_ = at(1, TokenKind::Control);
    eos_ = at(2, TokenKind::Control);
  }
  GRETA_TRY(read_special_id(gguf, "bos", &bos_));
  GRETA_TRY(read_special_id(gguf, "eos", &eos_));
  GRETA_TRY(read_special_id(gguf, "eot", &eot_));
  GRETA_TRY(read_special_id(gguf, "eom", &eom_));
  GRETA_TRY(read_special_id(gguf, "unknown", &unknown_));
  return read_special_id(gguf, "padding", &padding_);
}

void Tokenizer::find_ends() {
  ends_ = {eos_, eot_, eom_};
  for (const std::string_view text : kEndTexts) ends_.push_back(find(text));
  // Where <|return|> and <|call|> end a turn, <|end|> only ends one of its messages.
  const int32_t message_end = find("<|return|>") >= 0 && find("<|call|>") >= 0 ? find("<|end|>") : kNoToken;
  std::sort(ends_.begin(), ends_.end());
  ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
  ends_.erase(std::remove_if(ends_.begin(), ends_.end(),
                             [&](int32_t id) { return id == kNoToken || (id == message_end && id != eos_); }),
              ends_.end());
}

bool Tokenizer::is_end(int32_t id) const { return std::binary_search(ends_.begin(), ends_.end(), id); }

void Tokenizer::index_specials() {
  for (uint32_t id = 0; id < vocab_.size(); ++id) {
    const TokenKind kind = vocab_.kind(id);
    const std::string_view text = vocab_.text(id);
    if (text.empty()) continue;
    if (kind != TokenKind::Control && kind != TokenKind::Unknown && kind != TokenKind::UserDefined) continue;
    specials_.push_back(id);
    special_first_[uint8_t(text[0])] = true;
  }
  std::sort(specials_.begin(), specials_.end(), [&](uint32_t a, uint32_t b) {
    const std::string_view left = vocab_.text(a), right = vocab_.text(b);
    return left != right ? left < right : a < b;
  });
}

// The longest special token that `text` starts with: its bytes and id, or 0. Narrows the sorted
// list byte by byte.
uint32_t Tokenizer::match_special(std::string_view text, bool parse_special, int32_t* out_id) const {
  if (!special_first_[uint8_t(text[0])]) return 0;
  uint32_t best = 0;
  auto low = specials_.begin(), high = specials_.end();
  for (size_t depth = 0; depth < text.size() && low != high; ++depth) {
    const auto byte_at = [&](uint32_t id) {
      const std::string_view token = vocab_.text(id);
      return depth < token.size() ? int(uint8_t(token[depth])) : -1;
    };
    const int byte = uint8_t(text[depth]);
    low = std::partition_point(low, high, [&](uint32_t id) { return byte_at(id) < byte; });
    high = std::partition_point(low, high, [&](uint32_t id) { return byte_at(id) <= byte; });
    for (auto same = low; same != high && vocab_.text(*same).size() == depth + 1; ++same) {
      if (!parse_special && vocab_.kind(*same) != TokenKind::UserDefined) continue;
      best = uint32_t(depth + 1);
      *out_id = int32_t(*same);
      break;
    }
  }
  return best;
}

// ---- encode -----------------------------------------------------------------------------------

Status Tokenizer::encode(std::string_view text, EncodeOptions options, std::vector<int32_t>* out) const {
  if (text.size() > kMaxTextBytes)
    return fail(Code::Argument, "a text of %llu bytes, expected at most %llu",
                (unsigned long long)text.size(), (unsigned long long)kMaxTextBytes);
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = valid_utf8(text);
    text = repaired;
  }
  if (options.add_special && adds_bos()) out->push_back(bos_);
  std::string prefixed;
  const auto plain = [&](std::string_view stretch) -> Status {
    if (stretch.empty()) return {};
    if (!spm_ || !add_space_prefix_) return encoder_->encode(stretch, out);
    prefixed = ' ';  // at the start, and after each special token
    prefixed += stretch;
    return encoder_->encode(prefixed, out);
  };
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    int32_t id;
    const uint32_t bytes = match_special(text.substr(at), options.parse_special, &id);
    if (!bytes) {
      ++at;
      continue;
    }
    GRETA_TRY(plain(text.substr(start, at - start)));
    out->push_back(id);
    at += bytes;
    if (strip_after_special_ && id != bos_ && id != unknown_ && vocab_.text(uint32_t(id)) != "<|endoftext|>")
      while (at < text.size() && text[at] > 0 && is_space(uint32_t(text[at]))) ++at;
    start = at;
  }
  GRETA_TRY(plain(text.substr(start)));
  if (options.add_special && adds_eos()) out->push_back(eos_);
  return {};
}

// ---- decode -----------------------------------------------------------------------------------

void Tokenizer::append_piece(int32_t id, bool special, std::string* out) const {
  if (id < 0 || uint32_t(id) >= vocab_.size()) return;
  const std::string_view text = vocab_.text(uint32_t(id));
  const TokenKind kind = vocab_.kind(uint32_t(id));
  if (kind == TokenKind::Control || kind == TokenKind::Unknown) {
    if (special) out->append(text);
    return;
  }
  if (!spm_) {
    if (kind == TokenKind::UserDefined)
      out->append(text);  // written as it reads
    else
      append_bpe_bytes(text, out);
    return;
  }
  const int byte = kind == TokenKind::Byte || !vocab_.has_kinds() ? byte_piece(text) : -1;
  if (byte >= 0) return out->push_back(char(byte));
  const std::string_view mark = "\xE2\x96\x81";
  size_t start = 0;
  for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, start)) {
    out->append(text, start, at - start).push_back(' ');
    start = at + mark.size();
  }
  out->append(text, start);
}

std::string Tokenizer::piece(int32_t id, bool special) const {
  std::string out;
  append_piece(id, special, &out);
  return out;
}

std::string Tokenizer::decode(const int32_t* ids, size_t count, bool special) const {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) append_piece(ids[i], special, &bytes);
  if (spm_ && add_space_prefix_ && !bytes.empty() && bytes[0] == ' ') bytes.erase(0, 1);
  return is_valid_utf8(bytes) ? bytes : valid_utf8(bytes);
}

}  // namespace greta
