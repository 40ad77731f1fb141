// Filters and methods that make texts.
#include <algorithm>

#include "text/jinja/library/library.h"

namespace greta::jinja {
namespace {

constexpr std::string_view kSpace = " ";

// ---- filters and methods ----------------------------------------------------------------------

template <std::string (*Change)(std::string_view)>
Status change(Call& call) {
  std::string text;
  GRETA_TRY(call.self_text(&text));
  GRETA_TRY(call.run.step(text.size() / 4));
  return call.give_text(Change(text));
}

template <bool Left, bool Right>
Status strip_ends(Call& call) {
  std::string text;
  GRETA_TRY(call.self_text(&text));
  GRETA_TRY(call.run.step((text.size() + call.text(0).size()) / 4));
  return call.give_text(std::string(strip(text, call[0], Left, Right)));
}

// align: -1 puts the text to the left, 1 to the right, 0 into the middle, as Python's center() does.
Status pad(Call& call, std::string_view text, std::string_view fill, int align, std::string* out) {
  const int64_t width = call.integer(0, 80), length = int64_t(code_points(text));
  const uint64_t more = width > length ? uint64_t(width) - uint64_t(length) : 0;
  uint64_t bytes;
  if (!checked_multiply(more, fill.size(), &bytes)) bytes = UINT64_MAX;
  GRETA_TRY(call.run.room(bytes));
  const uint64_t left = align > 0 ? more : align < 0 ? 0 : more / 2 + (more & uint64_t(width) & 1);
  out->reserve(bytes + text.size());
  for (uint64_t i = 0; i < left; ++i) *out += fill;
  *out += text;
  for (uint64_t i = left; i < more; ++i) *out += fill;
  return {};
}

template <int Align>
Status aligned(Call& call) {
  std::string text, made;
  GRETA_TRY(call.self_text(&text));
  const std::string_view fill = call.text(1, kSpace);
  if (code_points(fill) != 1) return fail(Code::Argument, "the fill character must be one character");
  GRETA_TRY(pad(call, text, fill, Align, &made));
  return call.give(call.run.text(std::move(made)));
}

// Replaces the first `count` matches, or all if `count` is negative. An empty text matches before every
// character and at the end.
template <bool KeepsMarkup>
Status replace(Call& call) {
  Run& run = call.run;
  std::string text, from, to, made;
  GRETA_TRY(call.self_text(&text));
  GRETA_TRY(to_text(run, *call[0], &from));
  GRETA_TRY(to_text(run, *call[1], &to));
  const int64_t count = call.integer(2, -1);
  size_t at = 0;
  for (uint64_t left = count < 0 ? UINT64_MAX : uint64_t(count); left > 0; --left) {
    const size_t found = find_bytes(text, from, at);
    if (found == text.npos) break;
    made.append(text, at, found - at);
    GRETA_TRY(run.step(1 + to.size() / 64));
    if (made.size() + to.size() > run.budget.limit) return run.room(UINT64_MAX);
    made += to;
    at = found + from.size();
    if (!from.empty()) continue;
    if (found == text.size()) break;
    at += decode_utf8(text, found).bytes;
    made.append(text, found, at - found);
  }
  if (at < text.size()) made.append(text, at);
  if (KeepsMarkup) return call.give_text(std::move(made));
  GRETA_TRY(run.room(made.size()));
  return call.give(run.text(std::move(made)));
}

Status join(Run& run, std::string_view separator, std::span<const Value> items, bool any, std::string* out) {
  for (size_t i = 0; i < items.size(); ++i) {
    GRETA_TRY(run.step(1 + separator.size() / 64));
    if (i) out->append(separator);
    if (!any && !items[i].is_string())
      return fail(Code::Argument, "sequence item %zu: expected str instance, %s found", i,
                  items[i].type_name());
    GRETA_TRY(to_text(run, items[i], out));
    if (out->size() > run.budget.limit) return run.room(UINT64_MAX);
  }
  return run.room(out->size());
}

// ---- filters ----------------------------------------------------------------------------------

Status string_filter(Call& call) {
  if (call.self.is_string()) return call.give(call.self);
  std::string text;
  GRETA_TRY(call.self_text(&text));
  return call.give(call.run.text(std::move(text)));
}

Status safe(Call& call) {
  std::string text;
  GRETA_TRY(call.self_text(&text));
  return call.give(call.run.text(std::move(text), true));
}

template <bool Force>
Status escape(Call& call) {
  if (!Force && call.self.is_markup()) return call.give(call.self);
  std::string text;
  GRETA_TRY(call.self_text(&text));
  GRETA_TRY(call.run.room(text.size() * 5));
  return call.give(call.run.text(escape_html(text), true));
}

Status indent(Call& call) {
  std::string_view text;
  GRETA_TRY(want_text("what is indented", call.self, &text));
  std::string indention = "    ";
  if (call[0] && call[0]->is_string()) {
    indention = call.text(0);
  } else if (call[0]) {
    int64_t width;
    GRETA_TRY(want_int("width", *call[0], &width));
    width = std::max<int64_t>(width, 0);
    GRETA_TRY(call.run.room(uint64_t(width)));
    indention = std::string(size_t(width), ' ');
  }
  std::string ended(text), made;
  ended += '\n';
  const auto lines = split_lines(ended, false);
  if (call.is_true(1)) made = indention;
  for (size_t i = 0; i < lines.size(); ++i) {
    GRETA_TRY(call.run.step(1 + indention.size() / 64));
    if (made.size() > call.run.budget.limit) return call.run.room(UINT64_MAX);
    if (i) made += '\n';
    if (i && (call.is_true(2) || !lines[i].empty())) made += indention;
    made += lines[i];
  }
  return call.give_text(std::move(made));
}

Status truncate(Call& call) {
  const int64_t length = call.integer(0, 255), leeway = call.integer(3, 5);
  const std::string_view end = call.text(2, "...");
  const int64_t ending = int64_t(code_points(end));
  if (length < ending) return fail(Code::Argument, "expected length >= %lld", (long long)ending);
  if (leeway < 0) return fail(Code::Argument, "expected leeway >= 0");
  int64_t count;
  std::string_view text;
  GRETA_TRY(length_of(call.self, &count));
  if (count - length <= leeway) return call.give(call.self);  // also a list or a dict
  GRETA_TRY(want_text("what is truncated", call.self, &text));
  GRETA_TRY(call.run.room(text.size() + end.size()));
  std::string made(text.substr(0, byte_of(text, uint64_t(length - ending))));
  const size_t space = call.is_true(1) ? made.npos : made.rfind(' ');
  if (space != made.npos) made.resize(space);
  made += end;
  return call.give(call.run.text(std::move(made)));
}

// Counts runs of letters, digits and '_'.
Status wordcount(Call& call) {
  std::string text;
  GRETA_TRY(call.self_text(&text));
  int64_t count = 0;
  bool within = false;
  for (const auto& [code, bytes, at] : CodePoints(text)) {
    const CharClass c = char_class(code);
    const bool word = code == '_' || is_letter(c) || is_number(c);
    count += word && !within;
    within = word;
  }
  return call.give(count);
}

Status format_filter(Call& call) {
  const auto& [places, names] = call.arguments;
  if (!places.empty() && !names.empty())
    return fail(Code::Argument, "format takes arguments by position or by name, not both");
  std::string text;
  GRETA_TRY(call.self_text(&text));
  Value values = call.run.dict();
  if (names.empty()) values = call.run.sequence(std::vector<Value>(places), Flavor::Tuple);
  for (const auto& [name, value] : names) values.set(call.run.text(name), value);
  return format_percent(call.run, call.run.text(std::move(text), call.self.is_markup()), values, call.result);
}

Status join_filter(Call& call) {
  std::string separator, made;
  if (call[0]) GRETA_TRY(to_text(call.run, *call[0], &separator));
  std::vector<Value> items;
  GRETA_TRY(collect(call.run, call.self, &items));
  if (call[1])
    for (Value& item : items) GRETA_TRY(nested_attribute(call.run, item, *call[1], nullptr, &item));
  GRETA_TRY(join(call.run, separator, items, true, &made));
  return call.give(call.run.text(std::move(made)));
}

// ---- methods ----------------------------------------------------------------------------------

template <bool Front>
Status remove_affix(Call& call) {
  std::string_view text = call.self.as_string();
  const std::string_view affix = call.text(0);
  if (Front && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!Front && text.ends_with(affix)) text.remove_suffix(affix.size());
  return call.give_text(std::string(text));
}

Status zfill(Call& call) {
  const std::string_view text = call.self.as_string();
  const size_t digits = text.starts_with('-') || text.starts_with('+') ? 1 : 0;  // where they start
  std::string made;
  GRETA_TRY(pad(call, text, "0", 1, &made));
  const size_t zeros = made.size() - text.size();
  return call.give_text(std::string(text.substr(0, digits)) + std::string(zeros, '0') +
                        std::string(text.substr(digits)));
}

Status expandtabs(Call& call) {
  Run& run = call.run;
  const int64_t size = call.integer(0, 8);
  std::string made;
  int64_t column = 0;
  for (const char c : call.self.as_string()) {
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
  return call.give_text(std::move(made));
}

using Pieces = std::vector<std::string_view>;

Status give_pieces(Call& call, const Pieces& pieces, Flavor flavor = Flavor::List) {
  GRETA_TRY(call.run.room(pieces.size() * (sizeof(Value) + sizeof(Text)) + call.self.as_string().size()));
  GRETA_TRY(call.run.step(pieces.size()));
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const std::string_view piece : pieces) items.push_back(call.run.text(piece, call.self.is_markup()));
  return call.give_list(std::move(items), flavor);
}

// Splits the text into words with at most `most` cuts. The rest is one piece, with its outer white space.
template <bool FromRight>
void split_words(std::string_view text, uint64_t most, Pieces* out) {
  Pieces words;
  for (size_t at = 0; at < text.size();) {
    at += span_of(text.substr(at), is_blank);
    const size_t size = span_of(text.substr(at), [](uint32_t code) { return !is_blank(code); });
    if (size > 0) words.push_back(text.substr(at, size));
    at += size;
  }
  const size_t rest =
      words.size() - size_t(std::min<uint64_t>(most, words.size()));  // words that are not cut off
  if (rest > 0 && FromRight) {
    out->push_back(text.substr(0, size_t(words[rest - 1].data() - text.data()) + words[rest - 1].size()));
    words.erase(words.begin(), words.begin() + std::ptrdiff_t(rest));
  }
  if (rest > 0 && !FromRight) {
    words.resize(words.size() - rest + 1);
    words.back() = text.substr(size_t(words.back().data() - text.data()));
  }
  out->insert(out->end(), words.begin(), words.end());
}

template <bool FromRight>
Status split(Call& call) {
  const std::string_view text = call.self.as_string(), separator = call.text(0);
  const int64_t given = call.integer(1, -1);
  const uint64_t most = given < 0 ? UINT64_MAX : uint64_t(given);
  GRETA_TRY(call.run.step(text.size() / 8));
  Pieces pieces;
  if (!call[0]) {
    split_words<FromRight>(text, most, &pieces);
    return give_pieces(call, pieces);
  }
  if (separator.empty()) return fail(Code::Argument, "empty separator");
  // Splitting from the right is splitting the reversed text from the left.
  std::string seen(text), mark(separator);
  if (FromRight) {
    std::reverse(seen.begin(), seen.end());
    std::reverse(mark.begin(), mark.end());
  }
  std::vector<size_t> cuts;  // where separators begin
  for (size_t at = 0; cuts.size() < most; at += mark.size()) {
    at = find_bytes(seen, mark, at);
    if (at == text.npos) break;
    GRETA_TRY(call.run.step());
    cuts.push_back(FromRight ? text.size() - at - mark.size() : at);
  }
  if (FromRight) std::reverse(cuts.begin(), cuts.end());
  size_t start = 0;
  for (const size_t cut : cuts) {
    pieces.push_back(text.substr(start, cut - start));
    start = cut + separator.size();
  }
  pieces.push_back(text.substr(start));
  return give_pieces(call, pieces);
}

template <bool Last>
Status partition(Call& call) {
  const std::string_view text = call.self.as_string(), separator = call.text(0);
  if (separator.empty()) return fail(Code::Argument, "empty separator");
  GRETA_TRY(call.run.step(text.size() / 8));
  const size_t at = Last ? rfind_bytes(text, separator) : find_bytes(text, separator, 0);
  Pieces pieces = Last ? Pieces{"", "", text} : Pieces{text, "", ""};
  if (at != text.npos) pieces = {text.substr(0, at), separator, text.substr(at + separator.size())};
  return give_pieces(call, pieces, Flavor::Tuple);
}

Status splitlines(Call& call) {
  GRETA_TRY(call.run.step(call.self.as_string().size() / 4));
  return give_pieces(call, split_lines(call.self.as_string(), call.integer(0) != 0));
}

// If `self` is safe in HTML, a text that is not gets escaped.
void match_markup(const Call& call, Value* value) {
  if (call.self.is_markup() && value->is_string() && !value->is_markup())
    *value = call.run.text(escape_html(value->as_string()), true);
}

Status join_method(Call& call) {
  std::vector<Value> items;
  std::string made;
  GRETA_TRY(collect(call.run, *call[0], &items));
  for (Value& item : items) match_markup(call, &item);
  GRETA_TRY(join(call.run, call.self.as_string(), items, false, &made));
  return call.give_text(std::move(made));
}

template <Status (*Plain)(Call&)>
Status escaping(Call& call) {
  Value escaped[kMaxParameters];
  for (size_t i = 0; i < kMaxParameters; ++i) {
    if (!call[i]) continue;
    escaped[i] = *call[i];
    match_markup(call, &escaped[i]);
    call.slots[i] = &escaped[i];
  }
  return Plain(call);
}

constexpr FunctionRow kTextFilters[] = {
    {"upper", change<to_upper>},
    {"lower", change<to_lower>},
    {"title", change<to_title_words>},
    {"capitalize", change<to_capitalized>},
    {"trim", strip_ends<true, true>, 0, {{"chars", kTextOrNone}}},
    {"string", string_filter},
    {"safe", safe},
    {"escape", escape<false>},
    {"e", escape<false>},
    {"forceescape", escape<true>},
    {"replace", replace<false>, 2, {{"old"}, {"new"}, {"count", kIntOrNone}}},
    {"center", aligned<0>, 0, {{"width", kInt}}},
    {"indent", indent, 0, {{"width"}, {"first"}, {"blank"}}},
    {"truncate", truncate, 0, {{"length", kInt}, {"killwords"}, {"end", kText}, {"leeway", kIntOrNone}}},
    {"wordcount", wordcount},
    {"format", format_filter, kReadsArguments},
    {"join", join_filter, 0, {{"d"}, {"attribute", kAnyOrNone}}},
};

constexpr FunctionRow kTextMethods[] = {
    {"upper", change<to_upper>},
    {"lower", change<to_lower>},
    {"casefold", change<to_folded>},
    {"title", change<to_title>},
    {"capitalize", change<to_capitalized>},
    {"swapcase", change<to_swapped>},
    {"strip", escaping<strip_ends<true, true>>, 0, {{"the characters", kTextOrNone}}},
    {"lstrip", escaping<strip_ends<true, false>>, 0, {{"the characters", kTextOrNone}}},
    {"rstrip", escaping<strip_ends<false, true>>, 0, {{"the characters", kTextOrNone}}},
    {"removeprefix", remove_affix<true>, 1, {{"the affix", kText}}},
    {"removesuffix", remove_affix<false>, 1, {{"the affix", kText}}},
    {"center", aligned<0>, 1, {{"the width", kInt}, {"the fill character", kText}}},
    {"ljust", aligned<-1>, 1, {{"the width", kInt}, {"the fill character", kText}}},
    {"rjust", aligned<1>, 1, {{"the width", kInt}, {"the fill character", kText}}},
    {"zfill", zfill, 1, {{"the width", kInt}}},
    {"expandtabs", expandtabs, 0, {{"tabsize", kInt}}},
    {"split", split<false>, 0, {{"sep", kTextOrNone}, {"maxsplit", kInt}}},
    {"rsplit", split<true>, 0, {{"sep", kTextOrNone}, {"maxsplit", kInt}}},
    {"partition", partition<false>, 1, {{"the separator", kText}}},
    {"rpartition", partition<true>, 1, {{"the separator", kText}}},
    {"splitlines", splitlines, 0, {{"keepends", kFlag}}},
    {"join", join_method, 1, {{"what is joined"}}},
    {"replace",
     escaping<replace<true>>,
     2,
     {{"the old text", kText}, {"the new text", kText}, {"count", kInt}}},
    {"format", format_method, kReadsArguments},
};

}  // namespace

FunctionRows text_filters() { return kTextFilters; }
FunctionRows text_methods() { return kTextMethods; }

}  // namespace greta::jinja
