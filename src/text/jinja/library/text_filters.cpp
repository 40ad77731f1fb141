// Filters that make texts.
#include <algorithm>
#include <cmath>

#include "text/jinja/json.h"
#include "text/jinja/library/library.h"
#include "text/jinja/print.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {
namespace {

// What filters call soft_str: a text stays what it is, all else is str() of it.
Status soft_text(Run& run, const Value& value, std::string* out, bool* markup = nullptr) {
  if (markup) *markup = value.is_markup();
  return to_text(run, value, out);
}

template <std::string (*Change)(std::string_view)>
Status change(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("the filter", arguments, {}, 0, nullptr));
  std::string text;
  bool markup;
  GRETA_TRY(soft_text(run, subject, &text, &markup));
  GRETA_TRY(run.room(text.size()));
  GRETA_TRY(run.step(text.size() / 4));
  *out = run.text(Change(text), markup);
  return {};
}

// Unlike the method: words begin after white space, '-' and opening brackets.
std::string title_words(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    const auto splits = [&](const CodePoint& p) {
      return is_blank(p.code) || std::string_view("-({[<").find(text[end]) != std::string_view::npos;
    };
    for (bool first = true; end < text.size(); first = false) {
      const CodePoint point = decode_utf8(text, end);
      if (splits(point)) break;
      end += point.bytes;
      if (first) out += to_upper(text.substr(at, end - at)), at = end;
    }
    out += to_lower(text.substr(at, end - at));
    for (; end < text.size();) {
      const CodePoint point = decode_utf8(text, end);
      if (!splits(point)) break;
      out.append(text, end, point.bytes);
      end += point.bytes;
    }
    at = end;
  }
  return out;
}

Status trim(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* chars;
  GRETA_TRY(bind("trim", arguments, {"chars"}, 0, &chars));
  std::string_view unused;
  if (chars && !chars->is_none()) GRETA_TRY(want_text("the argument of trim", *chars, &unused));
  std::string text;
  bool markup;
  GRETA_TRY(soft_text(run, subject, &text, &markup));
  GRETA_TRY(run.room(text.size()));
  GRETA_TRY(run.step((text.size() + unused.size()) / 4));
  *out = run.text(std::string(strip(text, chars, true, true)), markup);
  return {};
}

Status string_filter(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("string", arguments, {}, 0, nullptr));
  if (subject.is_string()) return *out = subject, Status{};
  std::string text;
  GRETA_TRY(to_text(run, subject, &text));
  *out = run.text(std::move(text));
  return {};
}

Status safe(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("safe", arguments, {}, 0, nullptr));
  std::string text;
  GRETA_TRY(to_text(run, subject, &text));
  *out = run.text(std::move(text), true);
  return {};
}

template <bool Force>
Status escape(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("escape", arguments, {}, 0, nullptr));
  if (!Force && subject.is_markup()) return *out = subject, Status{};
  std::string text;
  GRETA_TRY(to_text(run, subject, &text));
  GRETA_TRY(run.room(text.size() * 5));
  *out = run.text(escape_html(text), true);
  return {};
}

Status replace_filter(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[3];
  GRETA_TRY(bind("replace", arguments, {"old", "new", "count"}, 2, slots));
  int64_t count = -1;
  if (slots[2] && !slots[2]->is_none()) GRETA_TRY(want_int("the count", *slots[2], &count));
  std::string text, from, to, made;
  GRETA_TRY(to_text(run, subject, &text));
  GRETA_TRY(to_text(run, *slots[0], &from));
  GRETA_TRY(to_text(run, *slots[1], &to));
  GRETA_TRY(replace(run, text, from, to, count, &made));
  *out = run.text(std::move(made));
  return {};
}

Status center(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slot;
  GRETA_TRY(bind("center", arguments, {"width"}, 0, &slot));
  int64_t width = 80;
  if (slot) GRETA_TRY(want_int("the width", *slot, &width));
  std::string text;
  GRETA_TRY(soft_text(run, subject, &text));
  return pad(run, text, width, " ", 0, out);
}

Status indent(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[3];
  GRETA_TRY(bind("indent", arguments, {"width", "first", "blank"}, 0, slots));
  std::string_view text;
  GRETA_TRY(want_text("what is indented", subject, &text));
  std::string indention = "    ";
  if (slots[0] && slots[0]->is_string()) {
    indention = slots[0]->as_string();
  } else if (slots[0]) {
    int64_t width;
    GRETA_TRY(want_int("the width", *slots[0], &width));
    GRETA_TRY(run.room(uint64_t(std::max<int64_t>(width, 0))));
    indention = std::string(size_t(std::max<int64_t>(width, 0)), ' ');
  }
  const bool blank = slots[2] && slots[2]->is_true();
  std::string ended(text), made;
  ended += '\n';
  const auto lines = split_lines(ended, false);
  if (slots[1] && slots[1]->is_true()) made = indention;
  for (size_t i = 0; i < lines.size(); ++i) {
    GRETA_TRY(run.step(1 + indention.size() / 64));
    if (made.size() > run.budget.limit) return run.room(UINT64_MAX);
    if (i) made += '\n';
    if (i && (blank || !lines[i].empty())) made += indention;
    made += lines[i];
  }
  GRETA_TRY(run.room(made.size()));
  *out = run.text(std::move(made), subject.is_markup());
  return {};
}

Status truncate(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[4];
  GRETA_TRY(bind("truncate", arguments, {"length", "killwords", "end", "leeway"}, 0, slots));
  int64_t length = 255, leeway = 5;
  std::string_view text, end = "...";
  if (slots[0]) GRETA_TRY(want_int("the length", *slots[0], &length));
  if (slots[2]) GRETA_TRY(want_text("the end", *slots[2], &end));
  if (slots[3] && !slots[3]->is_none()) GRETA_TRY(want_int("the leeway", *slots[3], &leeway));
  const int64_t ending = int64_t(code_points(end));
  if (length < ending) return fail(Code::Argument, "expected length >= %lld", (long long)ending);
  if (leeway < 0) return fail(Code::Argument, "expected leeway >= 0");
  int64_t count;
  GRETA_TRY(length_of(subject, &count));
  if (count - length <= leeway) return *out = subject, Status{};  // also a list or a dict
  GRETA_TRY(want_text("what is truncated", subject, &text));
  GRETA_TRY(run.room(text.size() + end.size()));
  std::string made(text.substr(0, byte_of(text, uint64_t(length - ending))));
  if (!slots[1] || !slots[1]->is_true()) {
    const size_t space = made.rfind(' ');
    if (space != made.npos) made.resize(space);
  }
  made += end;
  *out = run.text(std::move(made));
  return {};
}

// Runs of letters, digits and '_'.
Status wordcount(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("wordcount", arguments, {}, 0, nullptr));
  std::string text;
  GRETA_TRY(soft_text(run, subject, &text));
  int64_t count = 0;
  bool within = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const CharClass c = char_class(point.code);
    const bool word = point.code == '_' || is_letter(c) || is_number(c);
    count += word && !within;
    within = word;
    at += point.bytes;
  }
  *out = count;
  return {};
}

Status format_filter(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  if (!arguments.places.empty() && !arguments.names.empty())
    return fail(Code::Argument, "format takes arguments by position or by name, not both");
  std::string text;
  bool markup;
  GRETA_TRY(soft_text(run, subject, &text, &markup));
  Value values;
  if (arguments.names.empty()) {
    std::vector<Value> places = arguments.places;
    values = run.sequence(std::move(places), Flavor::Tuple);
  } else {
    values = run.dict();
    for (const auto& [name, value] : arguments.names) values.set(run.text(name), value);
  }
  return format_percent(run, run.text(std::move(text), markup), values, out);
}

Status join_filter(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind("join", arguments, {"d", "attribute"}, 0, slots));
  std::string separator, made;
  if (slots[0]) GRETA_TRY(to_text(run, *slots[0], &separator));
  std::vector<Value> items;
  GRETA_TRY(collect(run, subject, &items));
  if (slots[1] && !slots[1]->is_none())
    for (Value& item : items) GRETA_TRY(nested_attribute(run, item, *slots[1], nullptr, &item));
  GRETA_TRY(join(run, separator, items, true, &made));
  *out = run.text(std::move(made));
  return {};
}

// As transformers defines it: Python's json.dumps, without escapes for HTML.
Status tojson(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  const Value* slots[4];
  GRETA_TRY(bind("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, slots));
  JsonStyle style;
  style.ascii = slots[0] && slots[0]->is_true();
  style.sort_keys = slots[3] && slots[3]->is_true();
  style.max_bytes = run.budget.limit;
  if (slots[1] && slots[1]->is_string()) {
    style.indent = 0;
    style.indent_text = slots[1]->as_string();
  } else if (slots[1] && !slots[1]->is_none()) {
    int64_t width;
    GRETA_TRY(want_int("the indent", *slots[1], &width));
    style.indent = int32_t(std::clamp<int64_t>(width, 0, 1000));
  }
  if (slots[2] && !slots[2]->is_none()) {
    const auto items = slots[2]->items();
    if (items.size() != 2) return fail(Code::Argument, "tojson's separators are a pair of texts");
    std::string_view item, key;
    GRETA_TRY(want_text("a separator", items[0], &item));
    GRETA_TRY(want_text("a separator", items[1], &key));
    style.item_separator = item;
    style.key_separator = key;
  }
  std::string made;
  GRETA_TRY(to_json(subject, style, &made));
  GRETA_TRY(run.room(made.size()));
  *out = run.text(std::move(made));
  return {};
}

Status urlencode(Run& run, const Value& subject, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("urlencode", arguments, {}, 0, nullptr));
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string made;
  const auto quote = [&](const Value& value, bool query) -> Status {
    std::string text;
    GRETA_TRY(to_text(run, value, &text));
    for (const char c : text) {
      if (is_ascii_alnum(c) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query))
        made += c;
      else if (c == ' ' && query)
        made += '+';
      else
        ((made += '%') += kHex[uint8_t(c) >> 4]) += kHex[c & 15];
    }
    return run.room(made.size());
  };
  if (subject.is_string() || !(subject.is_dict() || sequence_of(subject))) {
    GRETA_TRY(quote(subject, false));
  } else {
    std::vector<Value> pairs;
    if (subject.is_dict())
      for (const Value::Entry& entry : subject.entries()) pairs.push_back(run.pair(entry.key, entry.value));
    else
      GRETA_TRY(collect(run, subject, &pairs));
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].items().size() != 2) return fail(Code::Argument, "urlencode takes pairs");
      if (i) made += '&';
      GRETA_TRY(quote(pairs[i].items()[0], true));
      made += '=';
      GRETA_TRY(quote(pairs[i].items()[1], true));
    }
  }
  *out = run.text(std::move(made));
  return {};
}

constexpr FunctionRow kTextFilters[] = {
    {"upper", change<to_upper>},
    {"lower", change<to_lower>},
    {"title", change<title_words>},
    {"capitalize", change<to_capitalized>},
    {"trim", trim},
    {"string", string_filter},
    {"safe", safe},
    {"escape", escape<false>},
    {"e", escape<false>},
    {"forceescape", escape<true>},
    {"replace", replace_filter},
    {"center", center},
    {"indent", indent},
    {"truncate", truncate},
    {"wordcount", wordcount},
    {"format", format_filter},
    {"join", join_filter},
    {"tojson", tojson},
    {"urlencode", urlencode},
};

}  // namespace

FunctionRows text_filters() { return kTextFilters; }

}  // namespace greta::jinja
