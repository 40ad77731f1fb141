#include "text/grammar/json_schema_texts.h"

#include <algorithm>
#include <map>

#include "text/grammar/json_schema_parts.h"
#include "text/unicode/unicode.h"

namespace greta {

namespace {

Status too_large() { return fail(Code::Unsupported, "JSON schema: what it says of a text is too large"); }

// How JSON writes the quote, the backslash and characters below a space; all others stand for themselves.
struct Spelling {
  uint32_t code;
  const char* text;
};
constexpr Spelling kSpellings[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
                                   {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};

// The characters that stand for themselves.
constexpr CharRange kPlain[] = {{' ', '!'}, {'#', '['}, {']', 0xD7FF}, {0xE000, kLastCode}};

bool has_spelling(uint32_t first, uint32_t last) {
  const auto meets = [&](uint32_t a, uint32_t b) { return first <= b && a <= last; };
  return std::ranges::any_of(kPlain, [&](const CharRange& r) { return meets(r.first, r.last); }) ||
         std::ranges::any_of(kSpellings, [&](const Spelling& s) { return meets(s.code, s.code); });
}

// GBNF for one character of the ranges, as JSON spells it.
std::string json_character(std::span<const CharRange> ranges) {
  std::string plain, out;
  for (const CharRange& r : ranges)
    for (const CharRange& part : kPlain) {
      const uint32_t first = std::max(r.first, part.first), last = std::min(r.last, part.last);
      char text[32];
      if (first > last) continue;
      if (first == last)
        format_text(text, sizeof text, first < 0x80 ? "\\x%02X" : "\\U%08X", unsigned(first));
      else
        format_text(text, sizeof text, last < 0x80 ? "\\x%02X-\\x%02X" : "\\U%08X-\\U%08X", unsigned(first),
                    unsigned(last));
      plain += text;
    }
  if (!plain.empty()) out = "[" + plain + "]";
  for (const Spelling& s : kSpellings)
    if (std::ranges::any_of(ranges,
                            [&](const CharRange& r) { return r.first <= s.code && s.code <= r.last; }))
      out += (out.empty() ? "" : " | ") + gbnf_literal(s.text);
  return out.find(" | ") == out.npos ? out : "(" + out + ")";
}

}  // namespace

TextSet TextSet::all() {
  TextSet set;
  set.states_.push_back({true, {{0, kLastCode, 0}}});
  return set;
}

// States are made in the order in which they are met, so the loop reaches each.
Status TextSet::combine(const TextSet& other, bool both, TextSet* out) const {
  constexpr uint32_t kDead = ~0u;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> ids;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  TextSet made;
  const auto id_of = [&](uint32_t a, uint32_t b) {
    const auto [at, added] = ids.try_emplace({a, b}, uint32_t(pairs.size()));
    if (added) pairs.push_back({a, b});
    return at->second;
  };
  if (!empty() && (!other.empty() || !both)) id_of(0, other.empty() ? kDead : 0);
  static const std::vector<Edge> none;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (pairs.size() > kMaxStates) return too_large();
    const auto [a, b] = pairs[i];
    const bool in_other = b != kDead && other.states_[b].accepts;
    State state{states_[a].accepts && in_other == both, {}};
    const std::vector<Edge>& theirs = b == kDead ? none : other.states_[b].edges;
    for (const Edge& mine : states_[a].edges) {
      uint32_t from = mine.first;
      for (const Edge& edge : theirs) {
        if (edge.last < from || edge.first > mine.last) continue;
        if (!both && edge.first > from) state.edges.push_back({from, edge.first - 1, id_of(mine.to, kDead)});
        const uint32_t first = std::max(from, edge.first), last = std::min(mine.last, edge.last);
        state.edges.push_back({first, last, id_of(mine.to, edge.to)});
        from = last + 1;
      }
      if (!both && from <= mine.last) state.edges.push_back({from, mine.last, id_of(mine.to, kDead)});
    }
    made.states_.push_back(std::move(state));
  }
  made.prune();
  *out = std::move(made);
  return {};
}

Status TextSet::limit(uint32_t least, uint32_t most, TextSet* out) const {
  // The lengths of the longest texts, state by state; kNoLimit where there is a circle.
  const uint32_t count = uint32_t(states_.size());
  std::vector<uint32_t> shortest(count, kNoLimit);
  std::vector<uint32_t> queue;
  for (uint32_t s = 0; s < count; ++s)
    if (states_[s].accepts) shortest[s] = 0, queue.push_back(s);
  std::vector<std::vector<uint32_t>> from(count);
  for (uint32_t s = 0; s < count; ++s)
    for (const Edge& e : states_[s].edges) from[e.to].push_back(s);
  for (size_t i = 0; i < queue.size(); ++i)
    for (const uint32_t s : from[queue[i]])
      if (shortest[s] == kNoLimit) shortest[s] = shortest[queue[i]] + 1, queue.push_back(s);
  // Longest: states leave in the order in which all behind them have left.
  std::vector<uint32_t> longest(count, 0), left(count), order;
  for (uint32_t s = 0; s < count; ++s) {
    left[s] = uint32_t(states_[s].edges.size());
    if (!left[s]) order.push_back(s);
  }
  for (size_t i = 0; i < order.size(); ++i)
    for (const uint32_t s : from[order[i]]) {
      longest[s] = std::max(longest[s], longest[order[i]] + 1);
      if (--left[s] == 0) order.push_back(s);
    }
  if (empty()) return *out = {}, Status{};
  const bool finite = left[0] == 0;
  if (least <= shortest[0] && (most == kNoLimit || (finite && longest[0] <= most)))
    return *out = *this, Status{};
  const uint32_t room = kMaxStates / count - 1;  // lengths from 0 on
  if (most != kNoLimit && most > room) most = std::max({room, least, shortest[0]});
  if (finite) most = std::min(most, longest[0]);
  const uint32_t kept = most == kNoLimit ? least : most;  // characters are counted up to here
  TextSet lengths;
  if (most != kNoLimit && least > most) return *out = {}, Status{};
  for (uint32_t n = 0; n <= kept; ++n) {
    if (n > kMaxStates) return too_large();
    State& state = lengths.states_.emplace_back();
    state.accepts = n >= least;
    if (n < kept || most == kNoLimit) state.edges = {{0, kLastCode, std::min(n + 1, kept)}};
  }
  return intersect(lengths, out);
}

void TextSet::prune() {
  const uint32_t count = uint32_t(states_.size());
  std::vector<std::vector<uint32_t>> from(count);
  std::vector<uint32_t> queue;
  std::vector<bool> ends(count);
  for (uint32_t s = 0; s < count; ++s) {
    std::erase_if(states_[s].edges, [](const Edge& e) { return !has_spelling(e.first, e.last); });
    for (const Edge& e : states_[s].edges) from[e.to].push_back(s);
    if (states_[s].accepts) ends[s] = true, queue.push_back(s);
  }
  for (size_t i = 0; i < queue.size(); ++i)
    for (const uint32_t s : from[queue[i]])
      if (!ends[s]) ends[s] = true, queue.push_back(s);
  if (count == 0 || !ends[0]) return states_.clear();
  std::vector<uint32_t> id(count);
  uint32_t next = 0;
  for (uint32_t s = 0; s < count; ++s)
    if (ends[s]) id[s] = next++;
  std::vector<State> kept;
  for (uint32_t s = 0; s < count; ++s) {
    if (!ends[s]) continue;
    State state{states_[s].accepts, {}};
    for (const Edge& e : states_[s].edges)
      if (ends[e.to]) state.edges.push_back({e.first, e.last, id[e.to]});
    kept.push_back(std::move(state));
  }
  states_ = std::move(kept);
}

bool TextSet::has(std::string_view text) const {
  uint32_t at = 0;
  if (empty()) return false;
  for (const auto& [code, bytes, place] : CodePoints(text)) {
    const auto& edges = states_[at].edges;
    const auto edge =
        std::ranges::find_if(edges, [&](const Edge& e) { return e.first <= code && code <= e.last; });
    if (edge == edges.end()) return false;
    at = edge->to;
  }
  return states_[at].accepts;
}

void TextSet::append_rules(const std::string& name, std::string* out) const {
  std::map<std::string, std::string> classes;  // each is one rule, however often it is used
  const auto one_of = [&](std::span<const CharRange> ranges) {
    const std::string body = json_character(ranges);
    const auto [at, added] = classes.try_emplace(body, name + "c" + std::to_string(classes.size()));
    if (added) *out += at->second + " ::= " + body + "\n";
    return at->second;
  };
  for (size_t s = 0; s < states_.size(); ++s) {
    std::map<uint32_t, std::vector<CharRange>> by_target;
    for (const Edge& e : states_[s].edges) by_target[e.to].push_back({e.first, e.last});
    std::string body = states_[s].accepts ? "\"\"" : "";
    for (const auto& [to, ranges] : by_target)
      body += (body.empty() ? "" : " | ") + one_of(ranges) + " " + name + std::to_string(to);
    *out += name + std::to_string(s) + " ::= " + body + "\n";
  }
}

}  // namespace greta
