// Reads calls that are written like those of a programming language:
//   Gemma 4                      call:NAME{key:value}, with texts between <|"|>
//   Llama 3.1's built-in tools   name.call(key="value")
//   LFM2                         [name(key="value", ...), ...]
//
// Keys have no quotes and may hold any character, and some templates write texts between quotes as they are.
// So the end of a key or a text is where what may follow it does follow.
#include "text/chat/calls.h"
#include "text/chat/text.h"

namespace greta {

using jinja::Value;

namespace {

constexpr uint32_t kMaxValueDepth = 32;
constexpr uint32_t kMaxSteps = 1u << 16;  // values and ends of keys that are tried
constexpr size_t kMaxKeyBytes = 256;
constexpr std::string_view kGemmaQuote = "<|\"|>";

class CallReader {
 public:
  explicit CallReader(std::string_view text) : text_(text) {}
  CallsRead calls(std::vector<ChatCall>* out);
  bool whole_value(Value* out);

 private:
  bool all_calls(std::vector<ChatCall>* out);
  bool call(ChatCall* out);
  bool arguments(char assign, char close, Value* out, uint32_t depth);
  bool key_and_value(char assign, char close, Value* key, Value* value, uint32_t depth);
  bool value(Value* out, uint32_t depth);
  bool list(char close, Value* out, uint32_t depth);
  bool quoted(bool plain, Value* out);
  bool python_text(std::string* out);
  bool plain_text(std::string_view quote, std::string* out);
  bool is_quoted() const {
    return text_.starts_with('"') || text_.starts_with('\'') || text_.starts_with(kGemmaQuote);
  }
  bool take_char(char c) {
    skip_blanks(&text_);
    return take(&text_, std::string_view(&c, 1));
  }
  bool step() { return ++steps_ <= kMaxSteps; }

  std::string_view text_;
  uint32_t steps_ = 0;
  bool open_text_ = false;  // a text had no end
};

// Returns true if a value may be followed by this.
bool may_follow_value(std::string_view text) {
  skip_blanks(&text);
  return text.empty() || std::string_view(",)]}:").find(text[0]) != std::string_view::npos;
}

// Returns true if an argument may be followed by this: the end, or another argument.
bool may_follow_argument(std::string_view text) {
  skip_blanks(&text);
  if (!take(&text, ",")) return text.starts_with(')');
  const size_t assign = text.find('=');
  if (assign == text.npos || assign > kMaxKeyBytes) return false;
  const std::string_view key = trim_blanks(text.substr(0, assign));
  std::string_view after = text.substr(assign + 1);
  skip_blanks(&after);
  return !key.empty() && key.find_first_of("'\"()[]{}") == key.npos && !after.empty() &&
         (is_ascii_alnum(after[0]) || std::string_view("'\"[{-").find(after[0]) != std::string_view::npos);
}

// Takes `digits` hexadecimal digits off the front.
bool take_code(std::string_view* text, size_t digits, uint32_t* out) {
  if (text->size() < digits) return false;
  *out = 0;
  for (const char c : text->substr(0, digits)) {
    const char low = char(c | 32);
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (low < 'a' || low > 'f')) return false;
    *out = *out * 16 + uint32_t(digit ? c - '0' : low - 'a' + 10);
  }
  text->remove_prefix(digits);
  return true;
}

// Takes what follows a backslash off the front, and appends what it stands for. As in Python, the backslash
// stays if it means nothing.
void unescape(std::string_view* text, std::string* out) {
  static constexpr std::string_view kNames = "ntrbfv0\\\"'", kMeanings("\n\t\r\b\f\v\0\\\"'", 10);
  const char c = (*text)[0];
  text->remove_prefix(1);
  if (const size_t at = kNames.find(c); at != kNames.npos) {
    *out += kMeanings[at];
    return;
  }
  std::string_view rest = *text;
  uint32_t code = 0, low = 0;
  const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
  if (digits == 0 || !take_code(&rest, digits, &code) || code > 0x10FFFF) {
    (*out += '\\') += c;
    return;
  }
  if (code >= 0xD800 && code < 0xDC00) {  // JSON writes two halves
    std::string_view half = rest;
    if (take(&half, "\\u") && take_code(&half, 4, &low) && low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      rest = half;
    }
  }
  append_utf8(code >= 0xD800 && code < 0xE000 ? 0xFFFD : code, out);
  *text = rest;
}

// A text with the escapes of Python or JSON, which does not go over several lines.
bool CallReader::python_text(std::string* out) {
  std::string_view rest = text_.substr(1);
  while (!rest.empty() && rest[0] != '\n') {
    const char c = rest[0];
    rest.remove_prefix(1);
    if (c == text_[0]) return text_ = rest, true;
    if (c != '\\') {
      *out += c;
    } else {
      if (rest.empty()) break;
      unescape(&rest, out);
    }
  }
  open_text_ |= rest.empty();
  return false;
}

// A text that was placed between quotes as it is.
bool CallReader::plain_text(std::string_view quote, std::string* out) {
  const auto may_follow = quote == kGemmaQuote ? may_follow_value : may_follow_argument;
  for (size_t at = text_.find(quote, quote.size()); at != text_.npos; at = text_.find(quote, at + 1)) {
    const std::string_view after = text_.substr(at + quote.size());
    if (!step()) return false;
    if (!may_follow(after)) continue;
    *out = text_.substr(quote.size(), at - quote.size());
    text_ = after;
    return true;
  }
  open_text_ = true;
  return false;
}

// plain: the text may have been placed between quotes as it is.
bool CallReader::quoted(bool plain, Value* out) {
  const std::string_view start = text_;
  std::string text;
  bool found = !start.starts_with(kGemmaQuote) && python_text(&text);
  if (found && plain) found = may_follow_argument(text_);
  if (!found) {
    text.clear();
    text_ = start;
    const bool gemma = start.starts_with(kGemmaQuote);
    if ((!plain && !gemma) || !plain_text(gemma ? kGemmaQuote : start.substr(0, 1), &text)) return false;
  }
  *out = Value(text);
  return true;
}

bool CallReader::list(char close, Value* out, uint32_t depth) {
  std::vector<Value> items;
  while (!take_char(close)) {
    if (!items.empty() && !take_char(',')) return false;
    if (!items.empty() && close == ')' && take_char(close)) break;  // (1,)
    items.emplace_back();
    if (!value(&items.back(), depth)) return false;
  }
  *out = Value::list(std::move(items));
  return true;
}

bool CallReader::value(Value* out, uint32_t depth) {
  if (depth > kMaxValueDepth || !step()) return false;
  skip_blanks(&text_);
  if (text_.empty()) return false;
  if (is_quoted()) return quoted(false, out);
  if (take(&text_, "{")) return arguments(':', '}', out, depth + 1);
  if (take(&text_, "[")) return list(']', out, depth + 1);
  if (take(&text_, "(")) return list(')', out, depth + 1);
  size_t end = 0;
  while (end < text_.size() &&
         (is_ascii_alnum(text_[end]) || std::string_view("_-.+").find(text_[end]) != std::string_view::npos))
    ++end;
  const std::string_view word = text_.substr(0, end);
  text_.remove_prefix(end);
  if (word == "True" || word == "true") return *out = true, true;
  if (word == "False" || word == "false") return *out = false, true;
  if (word == "None" || word == "null") return *out = nullptr, true;
  return parse_json(word, out).ok() && out->is_number();
}

// A key without quotes ends at the first sign behind which a value comes, and behind that what may follow.
bool CallReader::key_and_value(char assign, char close, Value* key, Value* item, uint32_t depth) {
  const auto value_follows = [&] {
    skip_blanks(&text_);
    const bool found = close == ')' && is_quoted() ? quoted(true, item) : value(item, depth);
    skip_blanks(&text_);
    return found && (text_.starts_with(',') || text_.starts_with(close));
  };
  skip_blanks(&text_);
  const std::string_view start = text_;
  if (is_quoted() && quoted(false, key) && take_char(assign)) return value_follows();
  text_ = start;
  for (size_t at = start.find(assign); at != start.npos && at <= kMaxKeyBytes;
       at = start.find(assign, at + 1)) {
    const std::string_view name = trim_blanks(start.substr(0, at));
    text_ = start.substr(at + 1);
    if (name.empty() || !step()) return false;
    if (value_follows()) return *key = Value(name), true;
  }
  return false;
}

bool CallReader::arguments(char assign, char close, Value* out, uint32_t depth) {
  *out = Value::dict();
  while (!take_char(close)) {
    if (out->size() > 0 && !take_char(',')) return false;
    Value key, item;
    if (!key_and_value(assign, close, &key, &item, depth)) return false;
    out->set(std::move(key), std::move(item));
  }
  return true;
}

bool CallReader::call(ChatCall* out) {
  skip_blanks(&text_);
  const bool gemma = take(&text_, "call:");
  std::string_view name;
  Value values;
  if (!take_until(&text_, gemma ? "{" : "(", &name)) return false;
  name = trim_blanks(name);
  if (!gemma && name.ends_with(".call")) name.remove_suffix(5);
  if (!is_name(name) || !arguments(gemma ? ':' : '=', gemma ? '}' : ')', &values, 0)) return false;
  out->name = name;
  out->arguments = to_json(values);
  return true;
}

bool CallReader::all_calls(std::vector<ChatCall>* out) {
  const bool list = take(&text_, "[");
  for (;;) {
    ChatCall one;
    if (out->size() == kMaxCallsInBody || !call(&one)) return false;
    out->push_back(std::move(one));
    if (list && take_char(',')) continue;
    if (list && !take_char(']')) return false;
    skip_blanks(&text_);
    return text_.empty();
  }
}

CallsRead CallReader::calls(std::vector<ChatCall>* out) {
  if (all_calls(out)) return CallsRead::Calls;
  return open_text_ ? CallsRead::Unfinished : CallsRead::None;
}

bool CallReader::whole_value(Value* out) {
  const bool found = value(out, 0);
  skip_blanks(&text_);
  return found && text_.empty();
}

}  // namespace

CallsRead read_written_calls(std::string_view body, std::vector<ChatCall>* out) {
  return CallReader(body).calls(out);
}

bool parse_written_value(std::string_view text, Value* out) {
  Value value;
  if (!CallReader(text).whole_value(&value)) return false;
  *out = std::move(value);
  return true;
}

}  // namespace greta
