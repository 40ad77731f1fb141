#include "text/grammar/build.h"

#include <algorithm>
#include <map>

#include "text/unicode/unicode.h"

namespace greta {

Status GrammarBuilder::count_elements(size_t more) {
  elements_ += more;
  if (elements_ > kMaxGrammarElements)
    return fail(Code::Argument, "the grammar has more than %u elements", kMaxGrammarElements);
  return {};
}

Status GrammarBuilder::add_rule(uint32_t* rule) {
  if (rules_.size() >= kMaxGrammarRules)
    return fail(Code::Argument, "the grammar has more than %u rules", kMaxGrammarRules);
  *rule = uint32_t(rules_.size());
  rules_.emplace_back();
  names_.emplace_back();
  return {};
}

Status GrammarBuilder::rule_of(std::string_view name, uint32_t* rule) {
  const auto [at, added] = by_name_.try_emplace(std::string(name), 0);
  if (added) {
    GRETA_TRY(add_rule(&at->second));
    names_[at->second] = name;
  }
  *rule = at->second;
  return {};
}

Status GrammarBuilder::append_bytes(const ByteSet& set, Sequence* out) {
  GRETA_TRY(count_elements(1));
  const auto [at, added] = by_set_.try_emplace(set, uint32_t(sets_.size()));
  if (added) sets_.push_back(set);
  out->push_back({GrammarElement::Bytes, at->second});
  return {};
}

Status GrammarBuilder::append_text(std::string_view text, Sequence* out) {
  for (const char byte : text) GRETA_TRY(append_bytes(ByteSet().set(uint8_t(byte)), out));
  return {};
}

namespace {

// Returns the ranges sorted, without overlaps, and without surrogates, which UTF-8 does not have.
std::vector<CharRange> plain_ranges(std::vector<CharRange> ranges, bool negated) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CharRange& a, const CharRange& b) { return a.first < b.first; });
  std::vector<CharRange> in, out;
  for (CharRange r : ranges) {
    r.last = std::min(r.last, kLastCode);
    if (r.first > r.last) continue;
    if (!in.empty() && r.first <= in.back().last + 1)
      in.back().last = std::max(in.back().last, r.last);
    else
      in.push_back(r);
  }
  if (negated) {
    std::vector<CharRange> others;
    uint32_t next = 0;
    for (const CharRange& r : in) {
      if (r.first > next) others.push_back({next, r.first - 1});
      next = r.last + 1;
    }
    if (next <= kLastCode) others.push_back({next, kLastCode});
    in = std::move(others);
  }
  for (const CharRange& r : in) {
    if (r.first < 0xD800) out.push_back({r.first, std::min(r.last, 0xD7FFu)});
    if (r.last > 0xDFFF) out.push_back({std::max(r.first, 0xE000u), r.last});
  }
  return out;
}

using Bytes = std::vector<std::pair<uint8_t, uint8_t>>;  // a range for each byte

// Cuts a range of code points where UTF-8 gets longer, and where a byte's range would depend on another's.
void split_range(uint32_t first, uint32_t last, std::vector<Bytes>* out) {
  for (const uint32_t end : {0x7Fu, 0x7FFu, 0xFFFFu})
    if (first <= end && last > end) {
      split_range(first, end, out);
      return split_range(end + 1, last, out);
    }
  for (uint32_t low = 0x3F; last > 0x7F && low <= 0x3FFFF; low = low << 6 | 0x3F) {
    if ((first & ~low) == (last & ~low)) continue;
    if (first & low) {
      split_range(first, first | low, out);
      return split_range((first | low) + 1, last, out);
    }
    if ((last & low) != low) {
      split_range(first, (last & ~low) - 1, out);
      return split_range(last & ~low, last, out);
    }
  }
  char a[4], b[4];
  const uint32_t count = encode_utf8(first, a);
  encode_utf8(last, b);
  Bytes bytes;
  for (uint32_t i = 0; i < count; ++i) bytes.push_back({uint8_t(a[i]), uint8_t(b[i])});
  out->push_back(std::move(bytes));
}

}  // namespace

Status GrammarBuilder::append_class(std::vector<CharRange> ranges, bool negated, Sequence* out) {
  std::vector<Bytes> pieces;
  for (const CharRange& r : plain_ranges(std::move(ranges), negated)) split_range(r.first, r.last, &pieces);
  std::map<Bytes, ByteSet> first_bytes;  // by the bytes that follow the first
  for (const Bytes& bytes : pieces)
    for (uint32_t byte = bytes[0].first; byte <= bytes[0].second; ++byte)
      first_bytes[Bytes(bytes.begin() + 1, bytes.end())].set(byte);
  if (first_bytes.empty()) return fail(Code::Argument, "a character class without characters");
  std::vector<Sequence> alternatives;
  for (const auto& [rest, first] : first_bytes) {
    Sequence sequence;
    GRETA_TRY(append_bytes(first, &sequence));
    for (const auto& [least, most] : rest) {
      ByteSet set;
      for (uint32_t byte = least; byte <= most; ++byte) set.set(byte);
      GRETA_TRY(append_bytes(set, &sequence));
    }
    alternatives.push_back(std::move(sequence));
  }
  if (alternatives.size() == 1)
    return out->insert(out->end(), alternatives[0].begin(), alternatives[0].end()), Status{};
  uint32_t rule = 0;
  GRETA_TRY(add_rule(&rule));
  define(rule, std::move(alternatives));
  GRETA_TRY(count_elements(1));
  out->push_back({GrammarElement::Rule, rule});
  return {};
}

// Appends `once` up to `most` times, as blocks and then what is left: rest(k) is a block and rest(k - 1), or
// less than a block.
Status GrammarBuilder::repeat_blocks(GrammarElement once, GrammarElement block, uint32_t most,
                                     Sequence* out) {
  Sequence less, rest;
  GRETA_TRY(repeat({once}, 0, kBlock - 1, &less));
  if (most % kBlock) GRETA_TRY(repeat({once}, 0, most % kBlock, &rest));
  for (uint32_t i = 0; i < most / kBlock; ++i) {
    uint32_t rule = 0;
    GRETA_TRY(add_rule(&rule));
    GRETA_TRY(count_elements(3));
    Sequence more{block};
    more.insert(more.end(), rest.begin(), rest.end());
    define(rule, {std::move(more), less});
    rest = {{GrammarElement::Rule, rule}};
  }
  out->insert(out->end(), rest.begin(), rest.end());
  return {};
}

Status GrammarBuilder::repeat(const Sequence& item, uint32_t least, uint32_t most, Sequence* out) {
  if (least > kMaxGrammarRepeats || (most != kNoLimit && (most > kMaxGrammarRepeats || most < least)))
    return fail(Code::Argument, "a repetition of %u to %u times, at most %u are allowed", least, most,
                kMaxGrammarRepeats);
  GrammarElement once = item.empty() ? GrammarElement{GrammarElement::End, 0} : item[0];
  if (item.size() != 1) {
    uint32_t rule = 0;
    GRETA_TRY(add_rule(&rule));
    define(rule, {item});
    once = {GrammarElement::Rule, rule};
  }
  // Many are counted in blocks.
  GrammarElement block = once;
  if (least >= 2 * kBlock || (most != kNoLimit && most - least >= 2 * kBlock)) {
    uint32_t rule = 0;
    GRETA_TRY(add_rule(&rule));
    GRETA_TRY(count_elements(kBlock));
    define(rule, {Sequence(kBlock, once)});
    block = {GrammarElement::Rule, rule};
  }
  const uint32_t blocks = least >= 2 * kBlock ? least / kBlock : 0;
  GRETA_TRY(count_elements(blocks + (least - blocks * kBlock)));
  out->insert(out->end(), blocks, block);
  out->insert(out->end(), least - blocks * kBlock, once);
  if (most == least) return {};
  if (most != kNoLimit && most - least >= 2 * kBlock) return repeat_blocks(once, block, most - least, out);
  // rest(k) is empty, or the item and then rest(k - 1). Without a limit rest refers to itself.
  uint32_t rest = 0;
  GRETA_TRY(add_rule(&rest));
  if (most == kNoLimit) {
    GRETA_TRY(count_elements(2));
    define(rest, {{once, {GrammarElement::Rule, rest}}, {}});
  } else {
    define(rest, {{once}, {}});
    for (uint32_t left = most - least - 1; left > 0; --left) {
      uint32_t longer = 0;
      GRETA_TRY(add_rule(&longer));
      GRETA_TRY(count_elements(2));
      define(longer, {{once, {GrammarElement::Rule, rest}}, {}});
      rest = longer;
    }
  }
  out->push_back({GrammarElement::Rule, rest});
  return {};
}

// Rule k stands for what follows after k bytes of the mark. Of bytes that do not go on in the mark, the end
// may be another beginning of it (the automaton of Knuth, Morris and Pratt, 1977).
Status GrammarBuilder::append_scan(std::string_view mark, int32_t token, bool without, Sequence* out) {
  const size_t size = mark.size();
  std::vector<uint32_t> rules(size + 1);
  for (uint32_t& rule : rules) GRETA_TRY(add_rule(&rule));
  for (size_t k = 0; k < size; ++k) {
    std::vector<ByteSet> to(size + 1);  // by the rule that follows
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const std::string text = std::string(mark.substr(0, k)) + char(byte);
      size_t next = text.size();
      while (!text.ends_with(mark.substr(0, next))) --next;
      to[next].set(byte);
    }
    std::vector<Sequence> alternatives;
    if (without) alternatives.emplace_back();  // the text may end
    for (size_t next = 0; next <= size; ++next) {
      if (to[next].none() || (without && next == size)) continue;
      Sequence& sequence = alternatives.emplace_back();
      GRETA_TRY(append_bytes(to[next], &sequence));
      GRETA_TRY(count_elements(1));
      sequence.push_back({GrammarElement::Rule, rules[next]});
    }
    if (token != kNoToken) alternatives.push_back({{GrammarElement::Token, uint32_t(token)}});
    define(rules[k], std::move(alternatives));
  }
  define(rules[size], std::vector<Sequence>(1));
  GRETA_TRY(count_elements(1));
  out->push_back({GrammarElement::Rule, rules[0]});
  return {};
}

Status GrammarBuilder::append_until(std::string_view mark, int32_t token, Sequence* out) {
  return append_scan(mark, token, false, out);
}

Status GrammarBuilder::append_without(std::string_view mark, Sequence* out) {
  return append_scan(mark, kNoToken, true, out);
}

Status GrammarBuilder::append_grammar(const Grammar& grammar, Sequence* out) {
  std::vector<uint32_t> rules(grammar.rules.size() - 1), sets;
  for (uint32_t& rule : rules) GRETA_TRY(add_rule(&rule));
  for (const ByteSet& set : grammar.sets) {
    const auto [at, added] = by_set_.try_emplace(set, uint32_t(sets_.size()));
    if (added) sets_.push_back(set);
    sets.push_back(at->second);
  }
  GRETA_TRY(count_elements(grammar.elements.size() + 1));
  for (uint32_t rule = 0; rule < rules.size(); ++rule) {
    std::vector<Sequence> alternatives;
    for (uint32_t a = grammar.rules[rule]; a < grammar.rules[rule + 1]; ++a) {
      Sequence& sequence = alternatives.emplace_back();
      for (uint32_t e = grammar.alternatives[a]; grammar.elements[e].kind != GrammarElement::End; ++e) {
        GrammarElement element = grammar.elements[e];
        if (element.kind == GrammarElement::Bytes) element.value = sets[element.value];
        if (element.kind == GrammarElement::Rule) element.value = rules[element.value];
        sequence.push_back(element);
      }
    }
    define(rules[rule], std::move(alternatives));
  }
  out->push_back({GrammarElement::Rule, rules[grammar.root]});
  return {};
}

// Finds the rules that may stand for nothing: first those with an empty alternative, then those with an
// alternative of such rules alone.
std::vector<bool> GrammarBuilder::nullable() const {
  struct Alternative {
    uint32_t rule;
    size_t left;
  };
  std::vector<Alternative> alternatives;
  std::vector<std::vector<uint32_t>> users(rules_.size());  // alternatives that wait for a rule
  std::vector<bool> is(rules_.size());
  std::vector<uint32_t> found;
  for (uint32_t rule = 0; rule < rules_.size(); ++rule)
    for (const Sequence& sequence : rules_[rule]) {
      const bool only_rules = std::all_of(sequence.begin(), sequence.end(), [](const GrammarElement& e) {
        return e.kind == GrammarElement::Rule;
      });
      if (!only_rules) continue;
      for (const GrammarElement& e : sequence) users[e.value].push_back(uint32_t(alternatives.size()));
      alternatives.push_back({rule, sequence.size()});
      if (sequence.empty() && !is[rule]) is[rule] = true, found.push_back(rule);
    }
  while (!found.empty()) {
    const uint32_t rule = found.back();
    found.pop_back();
    for (const uint32_t user : users[rule]) {
      Alternative& a = alternatives[user];
      if (--a.left == 0 && !is[a.rule]) is[a.rule] = true, found.push_back(a.rule);
    }
  }
  return is;
}

// Refuses left recursion: a rule that can begin with itself would need endless stacks. The exception is a
// call that is also the last element, since it comes back to the same stack. So a cycle of "can begin with"
// may only hold such calls.
Status GrammarBuilder::check_left_recursion() const {
  struct Edge {
    uint32_t to;
    bool grows;
  };
  const std::vector<bool> empty = nullable();
  std::vector<std::vector<Edge>> begins(rules_.size());
  for (uint32_t rule = 0; rule < rules_.size(); ++rule)
    for (const Sequence& sequence : rules_[rule])
      for (size_t i = 0; i < sequence.size() && sequence[i].kind == GrammarElement::Rule; ++i) {
        begins[rule].push_back({sequence[i].value, i + 1 < sequence.size()});
        if (!empty[sequence[i].value]) break;
      }
  // Tarjan's algorithm of 1972 for strongly connected components, with a list for a stack.
  const uint32_t count = uint32_t(rules_.size()), kNew = ~0u;
  std::vector<uint32_t> order(count, kNew), low(count), component(count, kNew), open;
  struct Visit {
    uint32_t rule;
    size_t edge;
  };
  std::vector<Visit> visits;
  uint32_t next = 0, components = 0;
  for (uint32_t start = 0; start < count; ++start) {
    if (order[start] == kNew) visits.push_back({start, 0});
    while (!visits.empty()) {
      const uint32_t rule = visits.back().rule;
      if (visits.back().edge == 0 && order[rule] == kNew)
        order[rule] = low[rule] = next++, open.push_back(rule);
      if (visits.back().edge < begins[rule].size()) {
        const uint32_t to = begins[rule][visits.back().edge++].to;
        if (order[to] == kNew)
          visits.push_back({to, 0});
        else if (component[to] == kNew)
          low[rule] = std::min(low[rule], order[to]);
        continue;
      }
      if (low[rule] == order[rule]) {
        for (uint32_t member = kNew; member != rule; open.pop_back())
          component[member = open.back()] = components;
        ++components;
      }
      visits.pop_back();
      if (!visits.empty()) low[visits.back().rule] = std::min(low[visits.back().rule], low[rule]);
    }
  }
  for (uint32_t rule = 0; rule < count; ++rule)
    for (const Edge& edge : begins[rule])
      if (edge.grows && component[rule] == component[edge.to])
        return fail(Code::Argument, "the rule \"%.60s\" can begin with itself: left recursion has no end",
                    names_[rule].c_str());
  return {};
}

Status GrammarBuilder::check_rules(uint32_t root) const {
  if (!is_defined(root))
    return fail(Code::Argument, "the grammar has no rule \"%.60s\"", names_[root].c_str());
  for (uint32_t rule = 0; rule < rules_.size(); ++rule)
    if (rules_[rule].empty())
      return fail(Code::Argument, "the rule \"%.60s\" is used but not defined", names_[rule].c_str());
  return check_left_recursion();
}

Status GrammarBuilder::finish(uint32_t root, std::shared_ptr<const Grammar>* out) {
  GRETA_TRY(check_rules(root));
  auto grammar = std::make_shared<Grammar>();
  for (const auto& alternatives : rules_) {
    grammar->rules.push_back(uint32_t(grammar->alternatives.size()));
    for (const Sequence& sequence : alternatives) {
      grammar->alternatives.push_back(uint32_t(grammar->elements.size()));
      grammar->elements.insert(grammar->elements.end(), sequence.begin(), sequence.end());
      grammar->elements.push_back({GrammarElement::End, 0});
    }
  }
  grammar->rules.push_back(uint32_t(grammar->alternatives.size()));
  grammar->root = root;
  // Bytes that no set tells apart share a class. Each set may cut a class in two.
  std::array<uint32_t, 256> of = {};
  uint32_t classes = 1;
  for (const ByteSet& set : sets_) {
    std::array<uint32_t, 512> part = {};  // by class, and whether the byte is in the set: 1 + the new class
    classes = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t& to = part[of[byte] * 2 + set[byte]];
      if (!to) to = ++classes;
      of[byte] = to - 1;
    }
  }
  grammar->class_byte.resize(classes);
  for (uint32_t byte = 0; byte < 256; ++byte) {
    grammar->byte_class[byte] = uint8_t(of[byte]);
    grammar->class_byte[of[byte]] = uint8_t(byte);
  }
  grammar->sets = std::move(sets_);
  *out = std::move(grammar);
  return {};
}

}  // namespace greta
