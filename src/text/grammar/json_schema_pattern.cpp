// Turns regular expressions (of ECMA-262, as JSON schemas have them) into sets of texts: first into a
// nondeterministic automaton, and that into a deterministic one.
#include <algorithm>
#include <map>
#include <vector>

#include "text/grammar/json_schema.h"
#include "text/grammar/json_schema_texts.h"
#include "text/unicode/unicode.h"

namespace greta {

// A nondeterministic automaton while it is made. Its nodes lie in the order in which they were read, so a
// part of a pattern is a range of nodes that can be copied.
struct PatternNode {
  enum Kind : uint8_t { Free, Character, Begin, End };  // what it takes to go on from here
  Kind kind = Free;
  std::vector<CharRange> ranges = {};
  std::vector<uint32_t> next = {};
};

namespace {

using Node = PatternNode;

using Range = CharRange;
using Ranges = std::vector<Range>;

struct ShortClass {
  char letter;
  Ranges ranges;
};
const ShortClass kShortClasses[] = {
    {'d', {{'0', '9'}}},
    {'w', {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
    {'s',
     {{9, 13},
      {32, 32},
      {0xA0, 0xA0},
      {0x1680, 0x1680},
      {0x2000, 0x200A},
      {0x2028, 0x2029},  //
      {0x202F, 0x202F},
      {0x205F, 0x205F},
      {0x3000, 0x3000},
      {0xFEFF, 0xFEFF}}},
};

Ranges all_but(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
  Ranges out;
  uint32_t next = 0;
  for (const Range& r : ranges) {
    if (r.first > next) out.push_back({next, r.first - 1});
    next = std::max(next, r.last + 1);
  }
  if (next <= kLastCode) out.push_back({next, kLastCode});
  return out;
}

struct Part {
  uint32_t first, last;  // nodes
  uint32_t begin, end;   // where it is entered, and the free node where it is left
};

class Pattern {
 public:
  explicit Pattern(std::string_view text) : text_(text) {}

  // A pattern matches anywhere: circles stand before it and behind it.
  Status parse(uint32_t* start, uint32_t* end) {
    if (text_.size() > kMaxPatternBytes) return refuse("it is longer than 4096 bytes");
    const Ranges any{{0, kLastCode}};
    *start = add({Node::Free, {}, {}});
    const uint32_t before = add({Node::Character, any, {*start}});
    Part part;
    GRETA_TRY(alternatives(0, &part));
    if (at_ < text_.size()) return refuse("a ) without its (");
    *end = add({Node::Free, {}, {}});
    const uint32_t behind = add({Node::Character, any, {*end}});
    nodes_[*start].next = {before, part.begin};
    nodes_[part.end].next = {*end};
    nodes_[*end].next = {behind};
    return {};
  }
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  static constexpr size_t kMaxPatternBytes = 4096;
  static constexpr size_t kMaxNodes = 40000;

  [[gnu::noinline]] Status refuse(const char* what) const {
    return fail(Code::Unsupported, "JSON schema: the pattern %s: %s", Quoted(text_).c_str(), what);
  }
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[gnu::noinline]] uint32_t add(Node node) {
    nodes_.push_back(std::move(node));
    return uint32_t(nodes_.size() - 1);
  }
  void link(uint32_t from, uint32_t to) { nodes_[from].next.push_back(to); }

  Status alternatives(uint32_t depth, Part* out) {
    if (depth > kMaxSchemaDepth) return refuse("its groups are too deep");
    out->first = out->begin = add({});
    out->end = add({});
    do {
      uint32_t last = out->begin;
      while (at_ < text_.size() && peek() != '|' && peek() != ')') {
        Part one;
        GRETA_TRY(atom(depth, &one));
        GRETA_TRY(repetition(&one));
        link(last, one.begin);
        last = one.end;
      }
      link(last, out->end);
    } while (take('|'));
    out->last = uint32_t(nodes_.size());
    return {};
  }

  Status atom(uint32_t depth, Part* out) {
    const char c = peek();
    if (c == '(') return ++at_, group(depth, out);
    if (c == '*' || c == '+' || c == '?' || c == '{') return refuse("a repeat of nothing");
    return single(out);
  }

  // The parser calls itself for groups, so functions that do not call back are not inlined.
  [[gnu::noinline]] Status single(Part* out) {
    Node node;
    if (take('^'))
      node.kind = Node::Begin;
    else if (take('$'))
      node.kind = Node::End;
    else
      GRETA_TRY(one_character(&node));
    out->first = out->begin = add(std::move(node));
    out->end = add({});
    link(out->begin, out->end);
    out->last = out->end + 1;
    return {};
  }

  Status one_character(Node* out) {
    out->kind = Node::Character;
    if (take('.')) return out->ranges = all_but({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}), Status{};
    return take('[') ? character_class(&out->ranges) : character(&out->ranges);
  }

  Status group(uint32_t depth, Part* out) {
    if (take('?') && !take(':')) {
      if (!take('<') || peek() == '=' || peek() == '!')
        return refuse("of groups only ( ), (?: ) and (?<name> )");
      while (at_ < text_.size() && !take('>')) ++at_;
    }
    GRETA_TRY(alternatives(depth + 1, out));
    return take(')') ? Status{} : refuse("a ( without its )");
  }

  [[gnu::noinline]] Status repetition(Part* part) {
    uint32_t least = 0, most = TextSet::kNoLimit;
    if (take('+'))
      least = 1;
    else if (take('?'))
      most = 1;
    else if (take('{'))
      GRETA_TRY(bounds(&least, &most));
    else if (!take('*'))
      return {};
    take('?');  // it changes nothing about whether a text matches
    return repeat(least, most, part);
  }

  Status bounds(uint32_t* least, uint32_t* most) {
    GRETA_TRY(number(least));
    *most = *least;
    if (take(',')) {
      *most = TextSet::kNoLimit;
      if (peek() != '}') GRETA_TRY(number(most));
    }
    return take('}') && *most >= *least ? Status{} : refuse("a repeat is {m}, {m,} or {m,n}");
  }

  // Makes a chain of copies. Each behind the `least`-th may be left out, with all that follow.
  Status repeat(uint32_t least, uint32_t most, Part* part) {
    const bool open = most == TextSet::kNoLimit;
    const uint32_t copies = open ? std::max(least, 1u) : most, size = part->last - part->first;
    if (uint64_t(copies) * size + nodes_.size() > kMaxNodes) return refuse("its repeats are too large");
    std::vector<Part> chain;
    if (copies) chain.push_back(*part);
    for (uint32_t i = 1; i < copies; ++i) {
      const uint32_t moved = uint32_t(nodes_.size()) - part->first;
      for (uint32_t n = part->first; n < part->last; ++n) {
        Node copy = nodes_[n];
        for (uint32_t& next : copy.next) next += moved;
        nodes_.push_back(std::move(copy));
      }
      chain.push_back({part->first + moved, part->last + moved, part->begin + moved, part->end + moved});
    }
    const uint32_t begin = add({}), end = add({});
    uint32_t last = begin;
    for (uint32_t i = 0; i < copies; ++i) {
      if (i >= least) link(last, end);
      link(last, chain[i].begin);
      last = chain[i].end;
    }
    link(last, end);
    if (open) link(last, chain.back().begin);
    *part = {part->first, uint32_t(nodes_.size()), begin, end};
    return {};
  }

  Status number(uint32_t* out) {
    const size_t begin = at_;
    *out = 0;
    for (; peek() >= '0' && peek() <= '9' && *out <= kMaxGrammarRepeats; ++at_)
      *out = *out * 10 + uint32_t(peek() - '0');
    return at_ == begin || *out > kMaxGrammarRepeats ? refuse("a repeat that is no number or too large")
                                                     : Status{};
  }

  // Behind the [.
  [[gnu::noinline]] Status character_class(Ranges* out) {
    const bool negated = take('^');
    while (!take(']')) {
      if (at_ >= text_.size()) return refuse("a [ without its ]");
      Ranges first, last;
      GRETA_TRY(character(&first));
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        if (at_ >= text_.size()) return refuse("a [ without its ]");
        GRETA_TRY(character(&last));
        if (!is_one(first) || !is_one(last) || last[0].last < first[0].first)
          return refuse("a range that is none");
        first[0].last = last[0].last;
      }
      out->insert(out->end(), first.begin(), first.end());
    }
    if (out->empty()) return refuse("a class without characters");
    if (negated) *out = all_but(std::move(*out));
    return {};
  }
  static bool is_one(const Ranges& r) { return r.size() == 1 && r[0].first == r[0].last; }

  // Reads one character, or what \d and its like stand for.
  Status character(Ranges* out) {
    if (!take('\\')) {
      const CodePoint next = decode_utf8(text_, at_);
      at_ += next.bytes;
      return out->push_back({next.code, next.code}), Status{};
    }
    const char letter = peek();
    if (at_ >= text_.size()) return refuse("a \\ at its end");
    ++at_;
    for (const ShortClass& each : kShortClasses) {
      if (letter == each.letter) return *out = each.ranges, Status{};
      if (letter == each.letter - 'a' + 'A') return *out = all_but(each.ranges), Status{};
    }
    uint32_t code = uint8_t(letter);
    static constexpr std::string_view kLetters = "fnrtv", kMeant = "\f\n\r\t\v",
                                      kMarks = "^$\\.*+?()[]{}|/-\"'#&,:;<=>@_`~! %";
    if (letter == 'x' || letter == 'u')
      GRETA_TRY(hexadecimal(letter == 'x' ? 2 : 4, &code));
    else if (const size_t known = kLetters.find(letter); known != kLetters.npos)
      code = uint8_t(kMeant[known]);
    else if (kMarks.find(letter) == kMarks.npos)
      return refuse("an escape that is not known");
    return out->push_back({code, code}), Status{};
  }

  Status hexadecimal(size_t digits, uint32_t* code) {
    *code = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const int digit = hex_digit(peek());
      if (digit < 0) return refuse("\\x wants two hexadecimal digits, \\u four");
      *code = *code << 4 | uint32_t(digit);
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace

// A state of the deterministic automaton is a set of nodes that wait for a character.
class TextSetMaker {
 public:
  TextSetMaker(std::span<const PatternNode> nodes, uint32_t goal)
      : nodes_(nodes), goal_(goal), seen_(nodes.size()) {}

  Status make(uint32_t start, TextSet* out) {
    TextSet set;
    id_of({start}, true);
    for (size_t i = 0; i < sets_.size(); ++i) {
      if (sets_.size() > TextSet::kMaxStates || work_ > kMaxWork)
        return fail(Code::Unsupported, "JSON schema: a pattern takes too many states");
      TextSet::State state{accepts_[i], {}};
      step(std::vector<uint32_t>(*sets_[i]), &state.edges);
      set.states_.push_back(std::move(state));
    }
    set.prune();
    *out = std::move(set);
    return {};
  }

 private:
  static constexpr uint64_t kMaxWork = 20'000'000;

  // The nodes that are reached without a character. Whether the goal is, at the end of a text, goes to
  // *accepts.
  std::vector<uint32_t> reach(const std::vector<uint32_t>& from, bool at_begin, bool at_end, bool* accepts) {
    std::vector<uint32_t> open = from, out;
    ++epoch_;
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      if (seen_[at] == epoch_) continue;
      seen_[at] = epoch_;
      ++work_;
      *accepts |= at == goal_;
      const Node& node = nodes_[at];
      if (node.kind == Node::Character || (node.kind == Node::End && !at_end)) {
        out.push_back(at);
        continue;
      }
      if (node.kind == Node::Begin && !at_begin) continue;
      open.insert(open.end(), node.next.begin(), node.next.end());
      work_ += node.next.size();
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  uint32_t id_of(const std::vector<uint32_t>& from, bool at_begin) {
    bool accepts = false, now = false;
    std::vector<uint32_t> set = reach(from, at_begin, false, &now);
    const auto [at, added] = ids_.try_emplace({now, std::move(set)}, uint32_t(sets_.size()));
    if (!added) return at->second;
    sets_.push_back(&at->first.second);
    reach(from, at_begin, true, &accepts);
    accepts_.push_back(accepts);
    return at->second;
  }

  void step(const std::vector<uint32_t>& set, std::vector<TextSet::Edge>* out) {
    std::map<uint32_t, std::vector<std::pair<uint32_t, bool>>>
        changes;  // where a node's range begins or ends
    for (const uint32_t n : set)
      for (const Range& r : nodes_[n].ranges) {
        changes[r.first].push_back({n, true});
        changes[r.last + 1].push_back({n, false});
      }
    std::map<uint32_t, uint32_t> active;  // nodes, and how many of their ranges are open
    for (auto at = changes.begin(); at != changes.end(); ++at) {
      for (const auto& [n, begins] : at->second) {
        if (begins) ++active[n];
        if (!begins && --active[n] == 0) active.erase(n);
      }
      if (active.empty()) continue;
      std::vector<uint32_t> next;
      for (const auto& [n, count] : active)
        next.insert(next.end(), nodes_[n].next.begin(), nodes_[n].next.end());
      work_ += next.size();
      const uint32_t first = at->first, last = std::next(at)->first - 1, to = id_of(next, false);
      if (!out->empty() && out->back().to == to && out->back().last + 1 == first)
        out->back().last = last;
      else
        out->push_back({first, last, to});
      if (sets_.size() > TextSet::kMaxStates || work_ > kMaxWork) return;
    }
  }

  std::span<const PatternNode> nodes_;
  uint32_t goal_, epoch_ = 0;
  uint64_t work_ = 0;
  std::vector<uint32_t> seen_;
  std::map<std::pair<bool, std::vector<uint32_t>>, uint32_t> ids_;
  std::vector<const std::vector<uint32_t>*> sets_;
  std::vector<bool> accepts_;
};

Status TextSet::matching(std::string_view pattern, TextSet* out) {
  Pattern read(pattern);
  uint32_t start = 0, end = 0;
  GRETA_TRY(read.parse(&start, &end));
  return TextSetMaker(read.nodes(), end).make(start, out);
}

Status TextSet::among(std::span<const std::string_view> texts, TextSet* out) {
  std::vector<Node> nodes(2);  // the start and the end
  for (const std::string_view text : texts) {
    uint32_t last = 0;
    for (const auto& [code, bytes, at] : CodePoints(text)) {
      nodes[last].next.push_back(uint32_t(nodes.size()));
      nodes.push_back({Node::Character, {{code, code}}, {uint32_t(nodes.size() + 1)}});
      nodes.push_back({});
      last = uint32_t(nodes.size() - 1);
    }
    nodes[last].next.push_back(1);
  }
  return TextSetMaker(nodes, 1).make(0, out);
}

}  // namespace greta
