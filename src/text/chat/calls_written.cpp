// Reads calls that are written like those of a programming language:
//   Gemma 4                      call:NAME{key:value}, with texts between <|"|>
//   Llama 3.1's built-in tools   name.call(key="value")
//   LFM2                         [name(key="value", ...), ...]
#include "text/chat/calls.h"
#include "text/chat/text.h"

namespace greta {

using jinja::Value;

namespace {

class CallReader {
 public:
  CallReader(std::string_view text) : text_(text) {}
  bool calls(std::vector<ChatCall>* out);

 private:
  bool call(ChatCall* out);
  bool arguments(char assign, char close, Value* out, uint32_t depth);
  bool value(Value* out, uint32_t depth);
  bool quoted(std::string* out);
  bool word(std::string_view* out);
  bool take_char(char c) {
    skip_blanks(&text_);
    return take(&text_, std::string_view(&c, 1));
  }
  std::string_view text_;
};

constexpr uint32_t kMaxValueDepth = 32;

bool CallReader::word(std::string_view* out) {
  skip_blanks(&text_);
  size_t end = 0;
  while (end < text_.size() && (uint8_t(text_[end]) >= 0x80 || is_ascii_alnum(text_[end]) ||
                                std::string_view("_-.+").find(text_[end]) != std::string_view::npos))
    ++end;
  *out = text_.substr(0, end);
  text_.remove_prefix(end);
  return end > 0;
}

bool CallReader::quoted(std::string* out) {
  std::string_view text;
  if (take(&text_, "<|\"|>")) {
    if (!take_until(&text_, "<|\"|>", &text)) return false;
    *out = text;
    return true;
  }
  const char quote = text_[0];
  for (size_t i = 1; i < text_.size(); ++i) {
    if (text_[i] == quote) return text_.remove_prefix(i + 1), true;
    if (text_[i] != '\\' || i + 1 == text_.size()) {
      *out += text_[i];
      continue;
    }
    const char c = text_[++i];
    if (c == 'n' || c == 't' || c == 'r')
      *out += c == 'n' ? '\n' : c == 't' ? '\t' : '\r';
    else if (c == '\\' || c == '"' || c == '\'')
      *out += c;
    else
      (*out += '\\') += c;
  }
  return false;
}

bool CallReader::value(Value* out, uint32_t depth) {
  if (depth > kMaxValueDepth) return false;
  skip_blanks(&text_);
  if (text_.empty()) return false;
  if (text_[0] == '"' || text_[0] == '\'' || text_.starts_with("<|\"|>")) {
    std::string text;
    if (!quoted(&text)) return false;
    *out = Value(text);
    return true;
  }
  if (take(&text_, "{")) return arguments(':', '}', out, depth + 1);
  if (take(&text_, "[")) {
    std::vector<Value> items;
    while (!take_char(']')) {
      if (!items.empty() && !take_char(',')) return false;
      items.emplace_back();
      if (!value(&items.back(), depth + 1)) return false;
    }
    *out = Value::list(std::move(items));
    return true;
  }
  std::string_view name;
  if (!word(&name)) return false;
  if (name == "True" || name == "true") return *out = true, true;
  if (name == "False" || name == "false") return *out = false, true;
  if (name == "None" || name == "null") return *out = nullptr, true;
  return parse_json(name, out).ok() && out->is_number();
}

bool CallReader::arguments(char assign, char close, Value* out, uint32_t depth) {
  *out = Value::dict();
  while (!take_char(close)) {
    if (out->size() > 0 && !take_char(',')) return false;
    std::string key;
    std::string_view plain;
    skip_blanks(&text_);
    if (!text_.empty() && (text_[0] == '"' || text_[0] == '\'' || text_.starts_with("<|\"|>"))) {
      if (!quoted(&key)) return false;
    } else if (word(&plain)) {
      key = plain;
    } else {
      return false;
    }
    Value item;
    if (!take_char(assign) || !value(&item, depth)) return false;
    out->set(std::string_view(key), std::move(item));
  }
  return true;
}

bool CallReader::call(ChatCall* out) {
  const bool gemma = take(&text_, "call:");
  std::string_view name;
  Value values;
  if (!word(&name)) return false;
  if (!gemma && name.ends_with(".call")) name.remove_suffix(5);
  if (!is_name(name) || (name[0] >= '0' && name[0] <= '9')) return false;
  if (!take_char(gemma ? '{' : '(') || !arguments(gemma ? ':' : '=', gemma ? '}' : ')', &values, 0))
    return false;
  out->name = name;
  out->arguments = to_json(values);
  return true;
}

bool CallReader::calls(std::vector<ChatCall>* out) {
  const bool list = take(&text_, "[");
  for (;;) {
    ChatCall one;
    skip_blanks(&text_);
    if (out->size() == kMaxCallsInBody || !call(&one)) return false;
    out->push_back(std::move(one));
    if (list && take_char(',')) continue;
    if (list && !take_char(']')) return false;
    skip_blanks(&text_);
    return text_.empty();
  }
}

}  // namespace

bool parse_written_calls(std::string_view body, std::vector<ChatCall>* out) {
  return CallReader(body).calls(out);
}

}  // namespace greta
