// Where a control token is written out, a copy of the conversation has a marker behind the first character of
// it. If the copy renders as the conversation does but for the markers, they show in the rendering which of
// its texts came from the conversation. The template sees the conversation itself, so that its rendering
// never changes. Where no control token is written out, nothing is rendered twice.
#include "text/chat/apart.h"

#include <algorithm>
#include <map>

namespace greta {
namespace {

using jinja::Value;

constexpr uint32_t kMaxRenderings = 64;

// The texts of control tokens, which can be found in a text.
class Controls {
 public:
  explicit Controls(const Vocab& vocab) : vocab_(vocab) {
    for (uint32_t id = 0; id < vocab.size(); ++id) {
      const TokenKind kind = vocab.kind(id);
      const std::string_view text = vocab.text(id);
      if ((kind != TokenKind::Control && kind != TokenKind::Unknown) || text.size() > kMaxSpecialBytes)
        continue;
      if (text.size() <= first_character(text)) continue;  // a marker has no place within it
      ids_.push_back(id);
      first_[uint8_t(text[0])] = true;
    }
    std::sort(ids_.begin(), ids_.end(),
              [&](uint32_t a, uint32_t b) { return vocab.text(a) < vocab.text(b); });
  }

  static size_t first_character(std::string_view text) {
    size_t bytes = text.empty() ? 0 : 1;
    while (bytes < text.size() && (uint8_t(text[bytes]) & 0xC0) == 0x80) ++bytes;
    return bytes;
  }

  // The longest one that `text` begins with, or one whose beginning is all of `text`; kNoToken if there is
  // none. `bytes` is how many bytes of `text` it has.
  int32_t at_start(std::string_view text, size_t* bytes) const {
    if (text.empty() || !first_[uint8_t(text[0])]) return kNoToken;
    int32_t found = kNoToken;
    auto low = ids_.begin(), high = ids_.end();
    for (size_t depth = 0; low != high; ++depth) {
      if (depth == text.size()) {
        *bytes = depth;
        return int32_t(*low);
      }
      const auto byte_at = [&](uint32_t id) {
        const std::string_view token = vocab_.text(id);
        return depth < token.size() ? int(uint8_t(token[depth])) : -1;
      };
      const int byte = uint8_t(text[depth]);
      low = std::partition_point(low, high, [&](uint32_t id) { return byte_at(id) < byte; });
      high = std::partition_point(low, high, [&](uint32_t id) { return byte_at(id) <= byte; });
      if (low != high && vocab_.text(*low).size() == depth + 1) {
        found = int32_t(*low);
        *bytes = depth + 1;
      }
    }
    return found;
  }

 private:
  const Vocab& vocab_;
  std::vector<uint32_t> ids_;  // by their text
  bool first_[256] = {};
};

// A control token that is written out in messages of one role.
struct Unit {
  std::string role;
  int32_t id;
  auto operator<=>(const Unit&) const = default;
};
using Units = std::map<Unit, bool>;  // true: it is marked

// Copies values with markers in them.
struct Marking {
  const Controls& controls;
  const std::string& marker;
  Units* units;
  bool finds;  // notes units, in place of marking those that are noted
  std::string role = {};

  bool wanted(int32_t id) {
    if (finds) return (*units)[{role, id}] = true;
    const auto found = units->find({role, id});
    return found != units->end() && found->second;
  }

  Value text(const Value& value) {
    const std::string_view all = value.as_string();
    std::string out;
    size_t copied = 0;
    for (size_t at = 0; at < all.size(); ++at) {
      size_t bytes = 0;
      const int32_t id = controls.at_start(all.substr(at), &bytes);
      if (id == kNoToken || !wanted(id)) continue;
      const size_t end = at + Controls::first_character(all.substr(at));
      out.append(all, copied, end - copied).append(marker);
      copied = end;
    }
    return copied ? Value(out.append(all, copied)) : value;
  }

  Value any(const Value& value) {
    if (value.is_string()) return text(value);
    if (value.is_list()) {
      Value out = Value::list();
      for (const Value& item : value.items()) out.push(any(item));
      return out;
    }
    if (!value.is_dict()) return value;
    Value out = Value::dict();
    for (const Value::Entry& entry : value.entries()) out.set(any(entry.key), any(entry.value));
    return out;
  }

  ChatInput conversation(const ChatInput& input) {
    ChatInput out = input;
    out.messages = Value::list();
    for (const Value& message : input.messages.items()) {
      role = message["role"].as_string();
      out.messages.push(any(message));
    }
    role = "";
    out.tools = any(input.tools);
    out.arguments = any(input.arguments);
    return out;
  }
};

std::string without(const std::string& text, const std::string& marker, std::vector<size_t>* seams) {
  std::string out;
  seams->clear();
  size_t start = 0;
  for (size_t at = text.find(marker); at != text.npos; at = text.find(marker, start)) {
    out.append(text, start, at - start);
    seams->push_back(out.size());
    start = at + marker.size();
  }
  return out.append(text, start);
}

// Finds the places of a rendering at which a marker stands.
class Search {
 public:
  Search(const ChatTemplate& form, const ChatInput& input, const Controls& controls, const std::string& text)
      : form_(form), input_(input), controls_(controls), text_(text) {
    for (uint32_t number = 0; marker_.empty() || text.find(marker_) != text.npos; ++number)
      marker_ = "Zq" + std::to_string(number) + "qZ";
  }

  // Leaves no seams where nothing is written out.
  Status find(std::vector<size_t>* seams) {
    Marking{controls_, marker_, &units_, true}.conversation(input_);
    std::vector<Unit> all;
    for (auto& [unit, marked] : units_) {
      all.push_back(unit);
      marked = false;
    }
    if (!all.empty()) GRETA_TRY(take(all, seams));
    return {};
  }

 private:
  // Marks those of the units whose markers change nothing else. The template looks for the others.
  Status take(std::span<const Unit> units, std::vector<size_t>* seams) {
    for (const Unit& unit : units) units_[unit] = true;
    if (++renderings_ > kMaxRenderings)
      return fail(Code::Argument,
                  "the chat template looks for too many of the control tokens that messages hold");
    std::string marked;
    const Status status =
        form_.render(Marking{controls_, marker_, &units_, false}.conversation(input_), {}, &marked);
    std::vector<size_t> found;
    if (status.ok() && without(marked, marker_, &found) == text_) {
      *seams = std::move(found);
      return {};
    }
    for (const Unit& unit : units) units_[unit] = false;
    if (units.size() < 2) return {};
    GRETA_TRY(take(units.first(units.size() / 2), seams));
    return take(units.subspan(units.size() / 2), seams);
  }

  const ChatTemplate& form_;
  const ChatInput& input_;
  const Controls& controls_;
  const std::string& text_;
  std::string marker_;
  Units units_;
  uint32_t renderings_ = 0;
};

}  // namespace

Status encode_apart(const ChatTemplate& form, const ChatInput& input, const Tokenizer& tokenizer,
                    std::string* text, std::vector<int32_t>* tokens, const CutRendering& cut) {
  std::string rendered;
  GRETA_TRY(form.render(input, {}, &rendered));
  const Controls controls(tokenizer.vocab());
  std::vector<size_t> seams;
  GRETA_TRY(Search(form, input, controls, rendered).find(&seams));
  size_t bytes = rendered.size();
  if (cut) GRETA_TRY(cut(rendered, &bytes));
  rendered.resize(bytes);
  std::erase_if(seams, [&](size_t seam) { return seam >= bytes; });
  text->append(rendered);
  return tokenizer.encode(rendered, {.add_special = true, .parse_special = true, .seams = seams}, tokens);
}

}  // namespace greta
