// The parts that all kinds of tokenizers share: special tokens, BOS and EOS, and decoding.
#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <iterator>

#include "text/tokenizer/encoders.h"
#include "text/tokenizer/split.h"

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
    "<|eot|>",
    "<|eom|>",
    "<|tools_suffix|>",  // Apertus waits for results
    "<|endofresponse|>",
    "<|end_of_sentence|>",
    "<EOT>",
    "_<EOT>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<|tool_response>",
    "[EOT]",
    "[EOS]",
    "[e~[",
    "<eos>",
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>",
};

// tokenizer.ggml.model
constexpr struct {
  std::string_view model;
  TokenizerKind kind;
} kModels[] = {
    {"none", TokenizerKind::None}, {"no_vocab", TokenizerKind::None}, {"llama", TokenizerKind::Spm},
    {"gpt2", TokenizerKind::Bpe},  {"gemma4", TokenizerKind::Bpe},    {"bert", TokenizerKind::Wpm},
    {"t5", TokenizerKind::Ugm},
};

std::string lower_ascii(std::string_view text) {
  std::string out;
  for (const char c : text) out.push_back(c >= 'A' && c <= 'Z' ? char(c + 32) : c);
  return out;
}

}  // namespace

Status Tokenizer::open(const Gguf& gguf, const Log& log) {
  gguf_ = &gguf;
  log_ = log;
  std::string_view model;
  GRETA_TRY(gguf.require("tokenizer.ggml.model"));
  GRETA_TRY(gguf.get_string("tokenizer.ggml.model", &model));
  const auto row = std::find_if(std::begin(kModels), std::end(kModels),
                                [&](const auto& each) { return each.model == model; });
  if (row == std::end(kModels))
    return fail(Code::Unsupported,
                "%s: tokenizer %s, expected \"llama\", \"gpt2\", \"gemma4\", \"bert\", \"t5\" or \"none\"",
                gguf.name(), Quoted(model).c_str());
  kind_ = row->kind;
  if (kind_ == TokenizerKind::None) return {};
  GRETA_TRY(within(vocab_.open(gguf), "%s", gguf.name()));
  GRETA_TRY(within(read_special_ids(gguf), "%s", gguf.name()));
  GRETA_TRY(within(open_encoder(gguf, model, log), "%s", gguf.name()));
  GRETA_TRY(within(read_flags(gguf, log), "%s", gguf.name()));
  GRETA_TRY(read_strips(gguf));
  find_ends();
  index_specials();
  return {};
}

// Makes the encoder, and sets the flags that a file may leave out.
Status Tokenizer::open_encoder(const Gguf& gguf, std::string_view model, const Log& log) {
  has_marks_ = kind_ != TokenizerKind::Bpe;
  if (kind_ == TokenizerKind::Spm) {
    add_bos_ = add_space_prefix_ = true;
    return make_spm_encoder(gguf, vocab_, unknown_, &encoder_);
  }
  if (kind_ == TokenizerKind::Wpm) {
    add_bos_ = force_bos_ = add_separator_ = add_space_prefix_ = true;
    return make_wpm_encoder(gguf, vocab_, unknown_, &encoder_);
  }
  if (kind_ == TokenizerKind::Ugm) {
    add_eos_ = add_space_prefix_ = true;
    GRETA_TRY(gguf.get_bool("tokenizer.ggml.add_space_prefix", &add_space_prefix_));
    return make_ugm_encoder(gguf, vocab_, unknown_, add_space_prefix_, &encoder_);
  }
  std::string_view name = model == "gemma4" ? model : std::string_view();
  if (name.empty()) GRETA_TRY(gguf.get_string("tokenizer.ggml.pre", &name));
  const SplitRule* rule = find_split_rule(name);
  if (!rule) {
    rule = &default_split_rule();
    log(LogLevel::Warning,
        "%s: the pre-tokenizer %s is not known; text is cut as \"default\" does, and the model may do badly",
        gguf.name(), Quoted(name).c_str());
  }
  add_bos_ = rule->has(kAddBos);
  force_bos_ = rule->has(kAddBos) && rule->has(kCharacters);  // Gemma 4 needs BOS, though its files deny it
  has_marks_ = rule->has(kCharacters);
  return make_bpe_encoder(gguf, vocab_, unknown_, *rule, log, &encoder_);
}

Status Tokenizer::read_flags(const Gguf& gguf, const Log& log) {
  GRETA_TRY(gguf.get_bool("tokenizer.ggml.add_bos_token", &add_bos_));
  GRETA_TRY(gguf.get_bool("tokenizer.ggml.add_eos_token", &add_eos_));
  if (kind_ == TokenizerKind::Spm)
    GRETA_TRY(gguf.get_bool("tokenizer.ggml.add_space_prefix", &add_space_prefix_));
  add_bos_ |= force_bos_;
  if (add_bos_ && bos_ == kNoToken)
    log(LogLevel::Warning, "%s: text should start with a BOS token, but the file names none", gguf.name());
  return {};
}

// Which tokens remove white space beside them. GGUF does not say it, but these models' tokenizer.json do.
Status Tokenizer::read_strips(const Gguf& gguf) {
  std::string_view pre, architecture, model_name;
  GRETA_TRY(gguf.get_string("general.name", &model_name));
  GRETA_TRY(gguf.get_string("general.architecture", &architecture));
  if (gguf.find("tokenizer.ggml.pre")) GRETA_TRY(gguf.get_string("tokenizer.ggml.pre", &pre));
  const std::string name = lower_ascii(model_name);
  strip_after_special_ = name.find("phi-3") != name.npos || name.find("phi3") != name.npos;
  if (pre == "jina-v2-de" || pre == "jina-v2-es" || pre == "jina-v2-code" ||
      architecture == "nomic-bert-moe" || architecture == "jina-bert-v3")
    strip_before_ = find("<mask>");
  else if (name.find("modern-bert") != name.npos)
    strip_before_ = find("[MASK]");
  return {};
}

bool Tokenizer::strips_after(int32_t id) const {
  return strip_after_special_ && id != bos_ && id != unknown_ && vocab_.text(uint32_t(id)) != "<|endoftext|>";
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
  const auto at = [&](uint32_t id, TokenKind kind) {
    return id < vocab_.size() && vocab_.kind(id) == kind ? int32_t(id) : kNoToken;
  };
  if (kind_ == TokenizerKind::Spm) {  // SentencePiece's own places, if these tokens look the part
    unknown_ = at(0, TokenKind::Unknown);
    bos_ = at(1, TokenKind::Control);
    eos_ = at(2, TokenKind::Control);
  } else if (kind_ == TokenizerKind::Ugm) {  // T5's
    padding_ = at(0, TokenKind::Control);
    eos_ = at(1, TokenKind::Control);
    for (uint32_t id = 0; id < vocab_.size() && unknown_ == kNoToken; ++id)
      unknown_ = at(id, TokenKind::Unknown);
  } else if (kind_ == TokenizerKind::Wpm) {
    bos_ = find("[CLS]");
    separator_ = find("[SEP]");
    unknown_ = find("[UNK]");
    padding_ = find("[PAD]");
    GRETA_TRY(read_special_id(gguf, "cls", &bos_));
  }
  const struct {
    const char* name;
    int32_t* id;
  } ids[] = {{"bos", &bos_},
             {"eos", &eos_},
             {"eot", &eot_},
             {"eom", &eom_},
             {"unknown", &unknown_},
             {"padding", &padding_},
             {"seperator", &separator_},  // as GGUF spells it
             {"separator", &separator_}};
  for (const auto& each : ids) GRETA_TRY(read_special_id(gguf, each.name, each.id));
  return {};
}

void Tokenizer::find_ends() {
  ends_ = {eos_, eot_, eom_};
  for (const std::string_view text : kEndTexts) ends_.push_back(find(text));
  // Where <|return|> and <|call|>, or <|flush|> and <|calls|>, end a turn, <|end|> only ends a message. So
  // does
  // <|eom|> where messages have a header, and <|eot|> ends a turn.
  const bool harmony = find("<|return|>") >= 0 && find("<|call|>") >= 0;
  const bool solar = find("<|flush|>") >= 0 && find("<|calls|>") >= 0;
  const bool addressed = find("<|message|>") >= 0 && find("<|eot|>") >= 0;
  const int32_t message_end = harmony || solar ? find("<|end|>") : addressed ? find("<|eom|>") : kNoToken;
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
    if (text.empty() || text.size() > kMaxSpecialBytes) continue;
    if (kind != TokenKind::Control && kind != TokenKind::Unknown && kind != TokenKind::UserDefined) continue;
    specials_.push_back(id);
    special_first_[uint8_t(text[0])] = true;
  }
  std::sort(specials_.begin(), specials_.end(), [&](uint32_t a, uint32_t b) {
    const std::string_view left = vocab_.text(a), right = vocab_.text(b);
    return left != right ? left < right : a < b;
  });
}

// Returns the bytes of the longest special token that `text` starts with, and sets its id; 0 if there is
// none. Those that are not user-defined have at most `most` bytes. Each byte of the text narrows the sorted
// list.
uint32_t Tokenizer::match_special(std::string_view text, size_t most, int32_t* out_id,
                                  uint64_t* steps) const {
  uint32_t best = 0;
  auto low = specials_.begin(), high = specials_.end();
  for (size_t depth = 0; depth < text.size() && low != high; ++depth) {
    ++*steps;
    const auto byte_at = [&](uint32_t id) {
      const std::string_view token = vocab_.text(id);
      return depth < token.size() ? int(uint8_t(token[depth])) : -1;
    };
    const int byte = uint8_t(text[depth]);
    low = std::partition_point(low, high, [&](uint32_t id) { return byte_at(id) < byte; });
    high = std::partition_point(low, high, [&](uint32_t id) { return byte_at(id) <= byte; });
    for (auto same = low; same != high && vocab_.text(*same).size() == depth + 1; ++same) {
      if (depth >= most && vocab_.kind(*same) != TokenKind::UserDefined) continue;
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
  if (!text.empty() && kind_ == TokenizerKind::None)
    return fail(Code::Unsupported, "the file has no vocabulary, so it cannot encode text");
  EncodeNotes notes(options);
  if (options.add_special && adds_bos()) out->push_back(bos_);
  std::string prefixed;
  const auto plain = [&](std::string_view stretch) -> Status {
    if (stretch.empty()) return {};
    if (kind_ != TokenizerKind::Spm || !add_space_prefix_) return encoder_->encode(stretch, out, &notes);
    prefixed = ' ';  // at the start, and after each special token
    prefixed += stretch;
    return encoder_->encode(prefixed, out, &notes);
  };
  const auto ascii_space = [&](size_t at) { return text[at] > 0 && is_space(uint8_t(text[at])); };
  size_t start = 0;
  auto seam = options.seams.begin();
  for (size_t at = 0; at < text.size() && !notes.stopped();) {
    int32_t id = kNoToken;
    while (seam != options.seams.end() && *seam <= at) ++seam;
    const size_t end_of_stretch = seam == options.seams.end() ? text.size() : *seam;
    const size_t most = options.parse_special ? end_of_stretch - at : 0;
    const uint32_t bytes =
        special_first_[uint8_t(text[at])] ? match_special(text.substr(at), most, &id, &notes.steps) : 0;
    if (!bytes) {
      ++at;
      continue;
    }
    size_t end = at;
    if (id == strip_before_)
      while (end > start && ascii_space(end - 1)) --end;
    GRETA_TRY(plain(text.substr(start, end - start)));
    out->push_back(id);
    at += bytes;
    if (strips_after(id))
      while (at < text.size() && ascii_space(at)) ++at;
    start = at;
  }
  if (!notes.stopped()) GRETA_TRY(plain(text.substr(start)));
  if (notes.stopped()) return fail(Code::Cancelled, "the caller stopped the encoding of a text");
  if (options.add_special && add_separator_ && separator_ != kNoToken) out->push_back(separator_);
  if (options.add_special && adds_eos()) out->push_back(eos_);
  if (options.steps) *options.steps += notes.steps;
  if (!notes.left_out.empty()) warn_left_out(notes.left_out);
  return {};
}

void Tokenizer::warn_left_out(std::string_view text) const {
  if (warned_.exchange(true)) return;
  log_(LogLevel::Warning,
       "%s: the vocabulary has no token for %s, so it is left out of the text, as is all that has none; "
       "this is said once",
       gguf_->name(), Quoted(text).c_str());
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
  if (!has_marks_) {
    if (kind == TokenKind::UserDefined)
      out->append(text);  // written as it reads
    else
      append_bpe_bytes(text, out);
    return;
  }
  const int byte = kind == TokenKind::Byte || !vocab_.has_kinds() ? byte_piece(text) : -1;
  if (byte >= 0) return out->push_back(char(byte));
  size_t start = 0;
  for (size_t at = text.find(kSpaceMarkText); at != text.npos; at = text.find(kSpaceMarkText, start)) {
    out->append(text, start, at - start).push_back(' ');
    start = at + kSpaceMarkText.size();
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
  if (add_space_prefix_ && !bytes.empty() && bytes[0] == ' ') bytes.erase(0, 1);
  return is_valid_utf8(bytes) ? bytes : valid_utf8(bytes);
}

}  // namespace greta
