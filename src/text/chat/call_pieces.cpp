#include "text/chat/call_pieces.h"

#include <algorithm>
#include <utility>

#include "text/chat/text.h"

namespace greta {

using jinja::Value;

namespace {

constexpr size_t kMaxHeadBytes = 4096;

bool is_blank(char c) { return kBlanks.find(c) != kBlanks.npos; }

// Writes a scalar, or what stands within quotes, as to_json() does. Returns false if it is no JSON.
bool copy_json(const std::string& text, std::string* out) {
  Value value;
  if (!parse_json(text, &value).ok()) return false;
  *out += to_json(value);
  return true;
}

// ---- texts --------------------------------------------------------------------------------------

// The bytes of the escape that `text` begins with; 0: it is not whole yet. Two halves of a surrogate pair are
// one.
size_t escape_bytes(std::string_view text) {
  const auto half = [&](size_t at) { return text.substr(at, 2) == "\\u" && (text[at + 2] | 32) == 'd'; };
  const auto high = [&](size_t at) {
    return half(at) && std::string_view("89abAB").find(text[at + 3]) != text.npos;
  };
  const auto low = [&](size_t at) {
    return half(at) && std::string_view("cdefCDEF").find(text[at + 3]) != text.npos;
  };
  if (text.size() < 2) return 0;
  if (text[1] != 'u') return 2;
  if (text.size() < 6) return 0;
  if (!high(0)) return 6;
  for (const size_t at : {size_t(6), size_t(7)}) {
    if (text.size() == at) return 0;
    if (text[at] != "\\u"[at - 6]) return 6;
  }
  if (text.size() < 12) return 0;
  return low(6) ? 12 : 6;
}

// The bytes of the character that `text` begins with; 0: it is not whole yet.
size_t character_bytes(std::string_view text) {
  const auto lead = uint8_t(text[0]);
  const size_t bytes = lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
  return text.size() < bytes ? 0 : bytes;
}

}  // namespace

// ---- JSON ---------------------------------------------------------------------------------------

size_t JsonCopy::push(std::string_view text, std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (done()) return i;
    if (broken()) break;
    take(text[i], out);
  }
  return text.size();
}

void JsonCopy::take(char c, std::string* out) {
  if (state_ == State::Text) {
    held_ += c;
    return take_text(out);
  }
  if (state_ == State::Scalar) {
    if (!is_blank(c) && c != ',' && c != '}' && c != ']') return void(held_ += c);
    end_scalar(out);
  }
  if (is_blank(c)) return;
  switch (state_) {
    case State::Value:
      return begin_value(c, out);
    case State::FirstItem:
      return c == ']' ? close(c, out) : begin_value(c, out);
    case State::FirstKey:
      if (c == '}') return close(c, out);
      [[fallthrough]];
    case State::Key:
      is_key_ = true;
      state_ = c == '"' ? State::Text : State::Broken;
      if (c == '"') *out += c;
      return;
    case State::Colon:
      state_ = c == ':' ? State::Value : State::Broken;
      if (c == ':') *out += ": ";
      return;
    case State::After:
      return take_after(c, out);
    default:
      return;
  }
}

void JsonCopy::begin_value(char c, std::string* out) {
  if (c == '{' || c == '[') return open(c, out);
  if (open_.empty() || std::string_view(",:}]").find(c) != std::string_view::npos)
    return void(state_ = State::Broken);
  is_key_ = false;
  state_ = c == '"' ? State::Text : State::Scalar;
  if (c == '"')
    *out += c;
  else
    held_ = c;
}

void JsonCopy::open(char bracket, std::string* out) {
  if (open_.size() == jinja::kMaxJsonDepth) return void(state_ = State::Broken);
  open_ += bracket;
  *out += bracket;
  state_ = bracket == '{' ? State::FirstKey : State::FirstItem;
}

void JsonCopy::close(char bracket, std::string* out) {
  if (open_.back() != (bracket == '}' ? '{' : '[')) return void(state_ = State::Broken);
  open_.pop_back();
  *out += bracket;
  state_ = open_.empty() ? State::Done : State::After;
}

void JsonCopy::take_after(char c, std::string* out) {
  if (c == '}' || c == ']') return close(c, out);
  if (c != ',') return void(state_ = State::Broken);
  *out += ", ";
  state_ = open_.back() == '{' ? State::Key : State::Value;
}

// Takes characters and escapes that are whole off the front of what is held.
void JsonCopy::take_text(std::string* out) {
  while (!held_.empty()) {
    if (held_[0] == '"') {
      *out += '"';
      held_.clear();
      return void(state_ = is_key_ ? State::Colon : State::After);
    }
    const size_t bytes = held_[0] == '\\' ? escape_bytes(held_) : character_bytes(held_);
    if (bytes == 0) return;
    std::string written;
    if (!copy_json('"' + held_.substr(0, bytes) + '"', &written)) return void(state_ = State::Broken);
    out->append(written, 1, written.size() - 2);
    held_.erase(0, bytes);
  }
}

void JsonCopy::end_scalar(std::string* out) {
  state_ = copy_json(held_, out) ? State::After : State::Broken;
  held_.clear();
}

// ---- heads --------------------------------------------------------------------------------------

namespace {

struct CallHead {
  enum class Found : uint8_t { No, NotYet, Yes } found = Found::NotYet;
  ChatCall call;
  size_t bytes = 0;    // before the object of the arguments
  uint32_t depth = 0;  // brackets that are open there
};
using Found = CallHead::Found;

// The object that `text` begins with may be one of JSON.
Found begins_object(std::string_view text) {
  text.remove_prefix(1);
  skip_blanks(&text);
  if (text.empty()) return Found::NotYet;
  return text[0] == '"' || text[0] == '}' ? Found::Yes : Found::No;
}

// The bytes of the JSON text in quotes that `text` begins with; 0: it is not whole yet.
size_t quoted_bytes(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
  }
  return 0;
}

// The object of a call: {"name": NAME, "arguments": {, or the same within "function".
class ObjectHead {
 public:
  explicit ObjectHead(std::string_view text) : text_(text), rest_(text) {}

  CallHead read() {
    skip_blanks(&rest_);
    if (rest_.starts_with('[')) rest_.remove_prefix(1), skip_blanks(&rest_);
    if (rest_.empty()) return out_;
    if (!rest_.starts_with('{')) return end(Found::No);
    open();
    while (out_.found == Found::NotYet && !stopped_) pair();
    return out_;
  }

 private:
  void open() {
    rest_.remove_prefix(1);
    ++out_.depth;
  }
  CallHead end(Found found) {
    out_.found = found;
    stopped_ = true;
    return out_;
  }
  // Takes a text in quotes off the front. False: it is not whole, or none.
  bool text(std::string* out) {
    const size_t bytes = quoted_bytes(rest_);
    if (bytes == 0) return stopped_ = true, false;
    Value value;
    if (!parse_json(rest_.substr(0, bytes), &value).ok()) return end(Found::No), false;
    *out = value.as_string();
    rest_.remove_prefix(bytes);
    return true;
  }
  void pair() {
    std::string key;
    skip_blanks(&rest_);
    if (rest_.starts_with('}')) return void(end(Found::No));
    if (!rest_.empty() && rest_[0] != '"') return void(end(Found::No));
    if (!text(&key)) return;
    skip_blanks(&rest_);
    if (!rest_.empty() && rest_[0] != ':') return void(end(Found::No));
    if (!rest_.empty()) rest_.remove_prefix(1);
    skip_blanks(&rest_);
    if (rest_.empty()) return void(stopped_ = true);
    value(key);
    if (stopped_ || out_.found != Found::NotYet) return;
    skip_blanks(&rest_);
    if (rest_.empty()) return void(stopped_ = true);
    if (!entered_ && !take(&rest_, ",")) end(Found::No);
    entered_ = false;
  }
  void value(const std::string& key) {
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), key) != names.end();
    };
    if (rest_[0] == '"') {
      std::string words;
      if (!text(&words)) return;
      if (is({"name", "tool_name"}) || (key == "function" && out_.depth == 1)) out_.call.name = words;
      if (is({"id", "tool_call_id", "call_id"}) && out_.depth == 1) out_.call.id = words;
      if (is({"arguments", "parameters", "args"})) end(Found::No);  // a text that holds them
    } else if (rest_[0] == '{' && is({"arguments", "parameters", "args"})) {
      out_.bytes = text_.size() - rest_.size();
      const Found found = out_.call.name.empty() ? Found::No : begins_object(rest_);
      out_.found = found;
      stopped_ = true;
    } else if (rest_[0] == '{' && key == "function" && out_.depth == 1) {
      open();
      entered_ = true;
    } else {
      const bool nested = rest_[0] == '{' || rest_[0] == '[';
      const size_t bytes = nested ? json_extent(rest_) : rest_.find_first_of(",}] \t\r\n");
      if (bytes == rest_.npos || bytes == 0) return void(stopped_ = true);
      rest_.remove_prefix(bytes);
    }
  }

  const std::string_view text_;
  std::string_view rest_;
  CallHead out_;
  bool stopped_ = false, entered_ = false;
};

CallHead read_head(std::string_view body) {
  CallHead head;
  std::string_view text = body;
  skip_blanks(&text);
  if (text.empty()) return head;
  if (text[0] == '{' || text[0] == '[') return ObjectHead(body).read();
  head.bytes = body.find('{');
  if (head.bytes == body.npos) return head;
  std::string_view name, id;
  head.found = read_call_head(body.substr(0, head.bytes), &name, &id) ? begins_object(body.substr(head.bytes))
                                                                      : Found::No;
  head.call.name = name;
  head.call.id = id;
  return head;
}

}  // namespace

// ---- calls --------------------------------------------------------------------------------------

void CallPieces::start(std::string_view name) {
  *this = {};
  state_ = State::Head;
  call_.name = name;
  named_ = !name.empty();
}

// Takes what stands before the arguments. Returns how many bytes of `text` it has taken.
size_t CallPieces::take_head(std::string_view text, const ToolList& tools, const Sink& sink, bool* wanted) {
  const size_t before = head_.size();
  head_ += text;
  CallHead head;
  if (!named_) {
    std::string_view from = head_;
    if (calls_) from.remove_prefix(std::min(from.size(), from.find_first_not_of(" \t\r\n,;")));
    head = read_head(from);
    head.bytes += head_.size() - from.size();
  } else {
    std::string_view from = head_;
    skip_blanks(&from);
    head.bytes = head_.size() - from.size();
    head.found = from.empty() ? Found::NotYet : from[0] == '{' ? begins_object(from) : Found::No;
    head.call.name = call_.name;
  }
  if (head.found == Found::NotYet && head_.size() <= kMaxHeadBytes) return text.size();
  state_ = head.found == Found::Yes && tools.has(head.call.name) ? State::Arguments : State::Nothing;
  if (state_ == State::Nothing) return text.size();
  call_ = std::move(head.call);
  copy_ = {};
  depth_ = head.depth;
  begun_ = true;
  *wanted = sink.begin(call_);
  // What was held of the object is taken again.
  const std::string object = head_.substr(head.bytes);
  const size_t ahead = std::min(object.size(), head_.size() - before);
  head_ = object.substr(0, object.size() - ahead);
  return text.size() - ahead;
}

// Takes what closes the call, so that another one may follow.
size_t CallPieces::take_tail(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (depth_ == 0) return state_ = State::Head, i;
    const char c = text[i];
    if (escaped_)
      escaped_ = false;
    else if (quoted_ && c == '\\')
      escaped_ = true;
    else if (c == '"')
      quoted_ = !quoted_;
    else if (!quoted_ && (c == '{' || c == '['))
      ++depth_;
    else if (!quoted_ && (c == '}' || c == ']'))
      --depth_;
  }
  if (depth_ == 0) state_ = State::Head;
  return text.size();
}

bool CallPieces::push(std::string_view text, const ToolList& tools, const Sink& sink,
                      const std::function<bool(ChatCall)>& whole) {
  bool wanted = true;
  while (wanted && state_ != State::Nothing && (!text.empty() || !head_.empty())) {
    if (state_ == State::Head) {
      if (text.empty()) break;
      text.remove_prefix(take_head(text, tools, sink, &wanted));
    } else if (state_ == State::Tail) {
      if (text.empty()) break;
      text.remove_prefix(take_tail(text));
    } else {
      std::string piece;
      copy_.push(head_, &piece);  // the beginning of the object, which does not end it
      head_.clear();
      text.remove_prefix(copy_.push(text, &piece));
      call_.arguments += piece;
      if (!piece.empty()) wanted = sink.argument(piece);
      if (copy_.broken() || call_.arguments.size() > kMaxCallBytes) state_ = State::Nothing;
      if (!copy_.done()) continue;
      ++calls_;
      state_ = named_ ? State::Nothing : State::Tail;
      wanted = wanted && whole(std::exchange(call_, {}));
    }
  }
  return wanted;
}

}  // namespace greta
