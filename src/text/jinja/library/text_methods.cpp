// Methods of strings.
#include <algorithm>

#include "text/jinja/library/library.h"
#include "text/unicode/unicode.h"

namespace greta::jinja {
namespace {

Status give(Run& run, std::string&& text, const Value& self, Value* out) {
  GRETA_TRY(run.room(text.size()));
  *out = run.text(std::move(text), self.is_markup());
  return {};
}

// ---- cases and ends ---------------------------------------------------------------------------

template <std::string (*Change)(std::string_view)>
Status change_self(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  GRETA_TRY(bind("the method", arguments, {}, 0, nullptr));
  GRETA_TRY(run.step(self.as_string().size() / 4));
  return give(run, Change(self.as_string()), self, out);
}

std::string swapped(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    const std::string_view one = text.substr(at, point.bytes);
    out += char_class(point.code) == CharClass::Upper ? to_lower(one) : to_upper(one);
    at += point.bytes;
  }
  return out;
}

template <bool Left, bool Right>
Status strip_method(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* chars;
  GRETA_TRY(bind("strip()", arguments, {"the characters"}, 0, &chars));
  std::string_view unused;
  if (chars && !chars->is_none()) GRETA_TRY(want_text("the argument of strip()", *chars, &unused));
  GRETA_TRY(run.step((self.as_string().size() + unused.size()) / 4));
  return give(run, std::string(strip(self.as_string(), chars, Left, Right)), self, out);
}

template <bool Front>
Status remove_affix(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* affix;
  std::string_view part;
  GRETA_TRY(bind(Front ? "removeprefix()" : "removesuffix()", arguments, {"the affix"}, 1, &affix));
  GRETA_TRY(want_text("the argument", *affix, &part));
  std::string_view text = self.as_string();
  if (Front && text.starts_with(part)) text.remove_prefix(part.size());
  if (!Front && !part.empty() && text.ends_with(part)) text.remove_suffix(part.size());
  return give(run, std::string(text), self, out);
}

template <int Align>
Status align_method(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* slots[2];
  GRETA_TRY(bind("the method", arguments, {"the width", "the fill character"}, 1, slots));
  int64_t width;
  std::string_view fill = " ";
  GRETA_TRY(want_int("the width", *slots[0], &width));
  if (slots[1]) GRETA_TRY(want_text("the fill character", *slots[1], &fill));
  if (code_points(fill) != 1) return fail(Code::Argument, "the fill character must be one character");
  return pad(run, self.as_string(), width, fill, Align, out);
}

Status zfill(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* slot;
  GRETA_TRY(bind("zfill()", arguments, {"the width"}, 1, &slot));
  int64_t width;
  GRETA_TRY(want_int("the width", *slot, &width));
  std::string_view text = self.as_string();
  const bool sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  Value padded;
  GRETA_TRY(pad(run, text.substr(sign), width - (sign && width > INT64_MIN), "0", 1, &padded));
  return give(run, std::string(text.substr(0, sign)) + std::string(padded.as_string()), self, out);
}

Status expandtabs(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* slot;
  GRETA_TRY(bind("expandtabs()", arguments, {"tabsize"}, 0, &slot));
  int64_t size = 8;
  if (slot) GRETA_TRY(want_int("the tab size", *slot, &size));
  std::string made;
  int64_t column = 0;
  for (const char c : self.as_string()) {
    if (c != '\t') {
      made += c;
      column = c == '\n' || c == '\r' ? 0 : column + ((c & 0xC0) != 0x80);
    } else if (size > 0) {
      const int64_t more = size - column % size;
      GRETA_TRY(run.room(uint64_t(more) + made.size() / 64));
      if (made.size() + uint64_t(more) > run.budget.limit) return run.room(UINT64_MAX);
      made.append(size_t(more), ' ');
      column += more;
    }
  }
  return give(run, std::move(made), self, out);
}

// ---- pieces -----------------------------------------------------------------------------------

struct SplitArguments {
  bool by_space = true;
  std::string_view separator;
  int64_t most = -1;
};

Status read_split(const Arguments& arguments, SplitArguments* out) {
  const Value* slots[2];
  GRETA_TRY(bind("split()", arguments, {"sep", "maxsplit"}, 0, slots));
  if (slots[0] && !slots[0]->is_none()) {
    GRETA_TRY(want_text("the separator", *slots[0], &out->separator));
    if (out->separator.empty()) return fail(Code::Argument, "empty separator");
    out->by_space = false;
  }
  return slots[1] ? want_int("maxsplit", *slots[1], &out->most) : Status{};
}

Status give_pieces(Run& run, const Value& self, const std::vector<std::string_view>& pieces, Flavor flavor,
                   Value* out) {
  GRETA_TRY(run.room(pieces.size() * (sizeof(Value) + sizeof(Text)) + self.as_string().size()));
  GRETA_TRY(run.step(pieces.size()));
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const std::string_view piece : pieces) items.push_back(run.text(piece, self.is_markup()));
  *out = run.sequence(std::move(items), flavor);
  return {};
}

Status split(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  SplitArguments how;
  GRETA_TRY(read_split(arguments, &how));
  std::string_view text = self.as_string();
  GRETA_TRY(run.step(text.size() / 8));
  std::vector<std::string_view> pieces;
  const auto full = [&] { return how.most >= 0 && int64_t(pieces.size()) >= how.most; };
  if (!how.by_space) {
    for (size_t at; !full() && (at = find_bytes(text, how.separator, 0)) != text.npos;) {
      GRETA_TRY(run.step());
      pieces.push_back(text.substr(0, at));
      text.remove_prefix(at + how.separator.size());
    }
    pieces.push_back(text);
    return give_pieces(run, self, pieces, Flavor::List, out);
  }
  for (text = strip(text, nullptr, true, false); !text.empty(); text = strip(text, nullptr, true, false)) {
    GRETA_TRY(run.step());
    if (full()) {
      pieces.push_back(text);  // with the white space at its end
      break;
    }
    size_t end = 0;
    while (end < text.size()) {
      const CodePoint point = decode_utf8(text, end);
      if (is_blank(point.code)) break;
      end += point.bytes;
    }
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return give_pieces(run, self, pieces, Flavor::List, out);
}

Status rsplit(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  SplitArguments how;
  GRETA_TRY(read_split(arguments, &how));
  if (how.most < 0) return split(run, self, arguments, out);
  std::string_view text = self.as_string();
  std::vector<std::string_view> pieces;
  const auto full = [&] { return int64_t(pieces.size()) >= how.most; };
  if (how.by_space) {
    for (text = strip(text, nullptr, false, true); !text.empty(); text = strip(text, nullptr, false, true)) {
      GRETA_TRY(run.step());
      if (full()) {
        pieces.push_back(text);
        break;
      }
      size_t start = text.size();
      while (start > 0) {
        size_t at = start - 1;
        while (at > 0 && (text[at] & 0xC0) == 0x80) --at;
        if (is_blank(decode_utf8(text, at).code)) break;
        start = at;
      }
      pieces.push_back(text.substr(start));
      text = text.substr(0, start);
    }
  } else {
    while (!full()) {
      GRETA_TRY(run.step(1 + text.size() / 8));
      const size_t at = rfind_bytes(text, how.separator);
      if (at == text.npos) break;
      pieces.push_back(text.substr(at + how.separator.size()));
      text = text.substr(0, at);
    }
    pieces.push_back(text);
  }
  std::reverse(pieces.begin(), pieces.end());
  return give_pieces(run, self, pieces, Flavor::List, out);
}

template <bool Last>
Status partition(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* slot;
  std::string_view separator;
  GRETA_TRY(bind("partition()", arguments, {"the separator"}, 1, &slot));
  GRETA_TRY(want_text("the separator", *slot, &separator));
  if (separator.empty()) return fail(Code::Argument, "empty separator");
  const std::string_view text = self.as_string();
  GRETA_TRY(run.step(text.size() / 8));
  const size_t at = Last ? rfind_bytes(text, separator) : find_bytes(text, separator, 0);
  std::vector<std::string_view> pieces;
  if (at != text.npos)
    pieces = {text.substr(0, at), separator, text.substr(at + separator.size())};
  else if (Last)
    pieces = {"", "", text};
  else
    pieces = {text, "", ""};
  return give_pieces(run, self, pieces, Flavor::Tuple, out);
}

Status splitlines(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* keep;
  bool keeps;
  GRETA_TRY(bind("splitlines()", arguments, {"keepends"}, 0, &keep));
  GRETA_TRY(want_flag("keepends", keep, &keeps));
  GRETA_TRY(run.step(self.as_string().size() / 4));
  return give_pieces(run, self, split_lines(self.as_string(), keeps), Flavor::List, out);
}

Status join_method(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* items;
  GRETA_TRY(bind("join()", arguments, {"what is joined"}, 1, &items));
  std::vector<Value> list;
  GRETA_TRY(collect(run, *items, &list));
  if (self.is_markup())
    for (Value& item : list)
      if (item.is_string() && !item.is_markup()) item = run.text(escape_html(item.as_string()), true);
  std::string made;
  GRETA_TRY(join(run, self.as_string(), list, false, &made));
  return give(run, std::move(made), self, out);
}

Status replace_method(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  const Value* slots[3];
  GRETA_TRY(bind("replace()", arguments, {"the old text", "the new text", "count"}, 2, slots));
  std::string_view from, to;
  int64_t count = -1;
  GRETA_TRY(want_text("the old text", *slots[0], &from));
  GRETA_TRY(want_text("the new text", *slots[1], &to));
  if (slots[2]) GRETA_TRY(want_int("the count", *slots[2], &count));
  std::string made;
  GRETA_TRY(replace(run, self.as_string(), from, to, count, &made));
  return give(run, std::move(made), self, out);
}

// Markup escapes what it is given.
template <Function Plain>
Status escaping(Run& run, const Value& self, const Arguments& arguments, Value* out) {
  if (!self.is_markup()) return Plain(run, self, arguments, out);
  Arguments escaped = arguments;
  const auto escape = [&](Value* value) {
    if (value->is_string() && !value->is_markup()) *value = run.text(escape_html(value->as_string()), true);
  };
  for (Value& value : escaped.places) escape(&value);
  for (auto& [name, value] : escaped.names) escape(&value);
  return Plain(run, self, escaped, out);
}

constexpr FunctionRow kTextMethods[] = {
    {"upper", change_self<to_upper>},
    {"lower", change_self<to_lower>},
    {"casefold", change_self<to_folded>},
    {"title", change_self<to_title>},
    {"capitalize", change_self<to_capitalized>},
    {"swapcase", change_self<swapped>},
    {"strip", escaping<strip_method<true, true>>},
    {"lstrip", escaping<strip_method<true, false>>},
    {"rstrip", escaping<strip_method<false, true>>},
    {"removeprefix", remove_affix<true>},
    {"removesuffix", remove_affix<false>},
    {"center", align_method<0>},
    {"ljust", align_method<-1>},
    {"rjust", align_method<1>},
    {"zfill", zfill},
    {"expandtabs", expandtabs},
    {"split", split},
    {"rsplit", rsplit},
    {"partition", partition<false>},
    {"rpartition", partition<true>},
    {"splitlines", splitlines},
    {"join", join_method},
    {"replace", escaping<replace_method>},
};

}  // namespace

FunctionRows text_methods() { return kTextMethods; }

}  // namespace greta::jinja
