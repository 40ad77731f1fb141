#include "text/chat/call_writing.h"

#include <algorithm>

#include "text/chat/channels.h"
#include "text/chat/text.h"

namespace greta {

using jinja::Value;

namespace {

constexpr std::string_view kNames[] = {"zq_first", "zq_second"};
// Ids as Mistral's templates require them, and as Kimi's models write them.
constexpr std::string_view kPlainIds[] = {"abcdefghi", "bcdefghij"};
constexpr std::string_view kNamedIds[] = {"functions.zq_first:0", "functions.zq_second:1"};
constexpr std::string_view kKeys[] = {"zqka", "zqkb"};
constexpr size_t kLongestHead = 256;

struct Way {
  const char* content;
  bool text_arguments, named_ids;
};
constexpr Way kWays[] = {{"\"\"", false, false}, {"null", false, false}, {"\"\"", true, false},
                         {"null", true, false},  {"\"\"", false, true},  {"null", false, true},
                         {"\"\"", true, true},   {"null", true, true}};

// The arguments of both calls of a conversation, and what is looked for of them.
struct Probe {
  const char* arguments;
  std::vector<std::string_view> values;
};
const Probe kTexts = {R"({"zqka": "zqva", "zqkb": "zqvb"})", {"zqva", "zqvb"}};
const Probe kOthers = {R"({"zqka": 71717, "zqkb": 82828})", {"71717", "82828"}};
const Probe kNoArguments = {"{}", {}};

struct Span {
  size_t begin = 0, end = 0;
};

// Where the parts of a call are.
struct Parts {
  Span name, json;  // json: empty unless the arguments are an object of JSON
  std::vector<Span> keys, values;
  size_t end = 0;  // of the last part
};

class CallFinder {
 public:
  CallFinder(const ChatForm& form, std::span<const std::string> ends, const RenderConversation& render)
      : form_(form), ends_(ends), render_(render) {}

  CallWriting find() {
    for (const Way& way : kWays) {
      way_ = &way;
      CallWriting out;
      if (learn(&out)) {
        out.known = true;
        return out;
      }
    }
    return {};
  }

 private:
  bool write(const Probe& probe, size_t calls, std::string* out) const {
    const std::string_view* ids = way_->named_ids ? kNamedIds : kPlainIds;
    std::string given;
    jinja::append_json_string(probe.arguments, false, &given);
    std::string list;
    for (size_t i = 0; i < calls; ++i) {
      if (i) list += ", ";
      list += R"({"type": "function", "id": ")" + std::string(ids[i]) + R"(", "function": {"name": ")" +
              std::string(kNames[i]) + R"(", "arguments": )" +
              (way_->text_arguments ? given : std::string(probe.arguments)) + "}}";
    }
    Value messages, tools;
    const std::string text = R"([{"role": "user", "content": "d"}, {"role": "assistant", "content": )" +
                             std::string(way_->content) + R"(, "tool_calls": [)" + list + "]}]";
    constexpr std::string_view kTools =
        R"([{"type": "function", "function": {"name": "f", "description": "d", "parameters":
            {"type": "object", "properties": {"key": {"type": "string", "description": "d"}}}}}])";
    out->clear();
    return parse_json(text, &messages).ok() && parse_json(kTools, &tools).ok() &&
           render_(messages, tools, out);
  }

  // Finds the parts of call `i` from `from` on.
  static bool find_parts(const std::string& text, size_t from, size_t i, const Probe& probe, Parts* out) {
    const size_t name = text.find(kNames[i], from);
    if (name == text.npos) return false;
    *out = {};
    out->name = {name, name + kNames[i].size()};
    out->end = out->name.end;
    size_t at = out->end;
    for (size_t k = 0; k < probe.values.size(); ++k) {
      const size_t key = text.find(kKeys[k], at), value = text.find(probe.values[k], at);
      if (key == text.npos || value == text.npos || value < key) return false;
      out->keys.push_back({key, key + kKeys[k].size()});
      out->values.push_back({value, value + probe.values[k].size()});
      at = out->end = out->values.back().end;
    }
    const size_t open = text.find('{', out->name.end);
    if (open == text.npos) return true;
    const std::string_view object = std::string_view(text).substr(open);
    const size_t bytes = json_extent(object);
    Value found, given;
    if (bytes && (out->keys.empty() || open < out->keys[0].begin) &&
        parse_json(object.substr(0, bytes), &found).ok() && parse_json(probe.arguments, &given).ok() &&
        to_json(found) == to_json(given)) {
      out->json = {open, open + bytes};
      out->end = open + bytes;
    }
    return true;
  }

  // Where the calls begin before the first name, and with which section.
  bool find_begin(const std::string& text, size_t name, size_t* begin) {
    section_ = nullptr;
    if (form_.channels) {
      constexpr std::string_view kAnswer = "<|start|>assistant";
      const size_t at = text.rfind(kAnswer, name);
      if (at == text.npos) return false;
      *begin = at + kAnswer.size();
      return true;
    }
    *begin = text.npos;
    for (const ChatSection* section : form_.sections) {
      if (section->kind != ChatSection::Kind::Calls) continue;
      const size_t at = text.rfind(section->open, name);
      if (at == text.npos || name - at > kLongestHead || at >= *begin) continue;
      const std::string_view between = std::string_view(text).substr(at, name - at);
      if (!section->close.empty() && between.find(section->close) != between.npos) continue;
      section_ = section;
      *begin = at;
    }
    if (!section_ && form_.bare_calls) *begin = text.rfind('{', name);
    return *begin != text.npos && name - *begin <= kLongestHead;
  }

  // What comes behind the last part, up to the end of the calls. Some templates forget the mark there.
  CallText tail_of(const std::string& text, size_t from) const {
    const std::string_view close = section_ ? section_->close : std::string_view();
    if (const size_t at = text.find(close, from); !close.empty() && at != text.npos)
      return form_of(text, from, at + close.size());
    size_t end = text.size();
    for (const std::string& mark : ends_)
      if (!mark.empty()) end = std::min(end, text.find(mark, from));
    while (end > from && kBlanks.find(text[end - 1]) != kBlanks.npos) --end;
    return form_of(text, from, end) + std::string(close);
  }

  // A stretch of the rendering with the ids taken out.
  CallText form_of(const std::string& text, size_t begin, size_t end) const {
    if (end < begin || end == text.npos) return {};
    CallText out = text.substr(begin, end - begin);
    for (const std::string_view id : kPlainIds)
      for (size_t at = out.find(id); at != out.npos; at = out.find(id, at))
        out.replace(at, id.size(), 1, kAnyId);
    if (way_->named_ids && out.size() > 1 && out[0] == ':') out[1] = kAnyNumber;
    return out;
  }

  bool learn(CallWriting* out) {
    std::string one, two;
    Parts first, second, again;
    size_t begin = 0;
    if (!write(kTexts, 1, &one) || !find_parts(one, 0, 0, kTexts, &first)) return false;
    if (!find_begin(one, first.name.begin, &begin)) return false;
    out->json = first.json.end != 0;
    out->bare = !section_ && !form_.channels;
    if (section_) out->mark = section_->open;
    out->head = form_of(one, begin, first.name.begin);
    out->more = write(kTexts, 2, &two) && find_parts(two, 0, 0, kTexts, &again) && again.end == first.end &&
                one.compare(0, first.end, two, 0, first.end) == 0 &&
                find_parts(two, first.end, 1, kTexts, &second);
    if (out->json) {
      out->before_json = form_of(one, first.name.end, first.json.begin);
      out->tail = tail_of(one, first.end);
      out->more &= second.json.end && form_of(two, second.name.end, second.json.begin) == out->before_json &&
                   tail_of(two, second.end) == out->tail;
      if (out->more) out->between = form_of(two, first.end, second.name.begin);
      return true;
    }
    return learn_arguments(one, two, first, second, out) && learn_none(out);
  }

  bool learn_arguments(const std::string& one, const std::string& two, const Parts& first,
                       const Parts& second, CallWriting* out) {
    std::string texts[2] = {one, {}};
    Parts parts[2] = {first, {}};
    if (!write(kOthers, 1, &texts[1]) || !find_parts(texts[1], 0, 0, kOthers, &parts[1])) return false;
    CallText next[2], tail[2];
    for (const uint8_t kind : {CallWriting::Text, CallWriting::Other}) {
      const std::string& text = texts[kind];
      const Parts& p = parts[kind];
      if (p.keys.size() != 2) return false;
      out->assign[kind] = form_of(text, p.keys[0].end, p.values[0].begin);
      if (form_of(text, p.keys[1].end, p.values[1].begin) != out->assign[kind]) return false;
      const CallText keys = form_of(text, p.name.end, p.keys[0].begin);
      if (kind == CallWriting::Other && keys != out->before_keys) return false;
      out->before_keys = keys;
      next[kind] = form_of(text, p.values[0].end, p.keys[1].begin);
      tail[kind] = tail_of(text, p.end);
    }
    if (!split_closes(next, tail, out)) return false;
    const CallText& close = out->close[CallWriting::Text];
    const CallText behind = out->more ? form_of(two, first.end, second.name.begin) : CallText();
    out->more &=
        behind.starts_with(close) && form_of(two, second.name.end, second.keys[0].begin) == out->before_keys;
    if (out->more) out->between = behind.substr(close.size());
    return true;
  }

  // What stands behind a value closes it, and then comes the next key or the end, whatever the value is.
  static bool split_closes(const CallText (&next)[2], const CallText (&tail)[2], CallWriting* out) {
    const auto common = [](const CallText& a, const CallText& b) {
      return size_t(std::ranges::mismatch(a, b).in1 - a.begin());
    };
    const size_t most[2] = {common(next[0], tail[0]), common(next[1], tail[1])};
    for (const bool whole : {true, false})  // a mark is not cut, if that can be
      for (size_t bytes = most[0] + 1; bytes-- > 0;) {
        const size_t left = next[0].size() - bytes;
        if (left > next[1].size() || next[1].size() - left > most[1]) continue;
        const size_t other = next[1].size() - left;
        if (whole && (bytes == 0 || std::string_view(">\"'").find(next[0][bytes - 1]) == kBlanks.npos))
          continue;
        if (next[0].substr(bytes) != next[1].substr(other) || tail[0].substr(bytes) != tail[1].substr(other))
          continue;
        out->close[0] = next[0].substr(0, bytes), out->close[1] = next[1].substr(0, other);
        out->next_key = next[0].substr(bytes), out->tail = tail[0].substr(bytes);
        return bytes != 0;
      }
    return false;
  }

  bool learn_none(CallWriting* out) {
    std::string one, two;
    Parts first, second;
    if (!write(kNoArguments, 1, &one) || !find_parts(one, 0, 0, kNoArguments, &first)) return false;
    out->none_tail = tail_of(one, first.name.end);
    if (!out->more) return true;
    out->more = write(kNoArguments, 2, &two) && find_parts(two, 0, 1, kNoArguments, &second);
    if (out->more) out->none_between = form_of(two, first.name.end, second.name.begin);
    return true;
  }

  const ChatForm& form_;
  const std::span<const std::string> ends_;
  const RenderConversation& render_;
  const Way* way_ = nullptr;
  const ChatSection* section_ = nullptr;
};

}  // namespace

CallWriting find_call_writing(const ChatForm& form, std::span<const std::string> ends,
                              const RenderConversation& render) {
  CallWriting found = CallFinder(form, ends, render).find();
  if (found.known || !form.any_calls) return found;
  CallWriting plain;
  plain.known = plain.json = plain.more = true;
  plain.mark = "<tool_call>";
  plain.head = "<tool_call>\n{\"name\": \"";
  plain.before_json = "\", \"arguments\": ";
  plain.tail = "}\n</tool_call>";
  plain.between = plain.tail + "\n" + plain.head;
  return plain;
}

}  // namespace greta
