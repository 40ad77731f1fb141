// Walks a matcher through a grammar.
#include "text/grammar/grammar.h"

#include <algorithm>

namespace greta {

// If more is remembered than this, all states but the current one are forgotten.
constexpr size_t kMaxNodes = 1u << 17, kMaxStates = 1u << 13;

// A mask is kept if it took at least so many nodes of the trie. Within texts the same one comes again.
constexpr uint64_t kMaskWorthKeeping = 1024;

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {
  clear();
}

void GrammarMatcher::clear() {
  nodes_.clear();
  node_table_.assign(1024, 0);
  stacks_.clear();
  states_.assign(1, {0, 0, false, false});  // kDead
  state_table_.assign(256, 0);
  transitions_.assign(grammar_->class_byte.size(), kDead);
  epoch_ = 0;
  for (Mask& mask : masks_) mask.state = kNone;
}

namespace {

// Doubles a hash table that `count` entries fill by half. Slots hold index + 1, at the place hash(index).
template <class Hash>
void grow_table(std::vector<uint32_t>* table, size_t count, Hash hash) {
  if ((count + 1) * 2 < table->size()) return;
  table->assign(table->size() * 2, 0);
  const size_t mask = table->size() - 1;
  for (uint32_t i = 0; i < count; ++i) {
    size_t slot = hash(i) & mask;
    while ((*table)[slot]) slot = (slot + 1) & mask;
    (*table)[slot] = i + 1;
  }
}

uint64_t mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  return x;
}

}  // namespace

uint32_t GrammarMatcher::node(uint32_t element, uint32_t parent) {
  const auto hash = [](uint64_t e, uint64_t p) { return mix(e << 32 | p); };
  grow_table(&node_table_, nodes_.size(),
             [&](uint32_t i) { return hash(nodes_[i].element, nodes_[i].parent); });
  const size_t mask = node_table_.size() - 1;
  size_t slot = hash(element, parent) & mask;
  for (; node_table_[slot]; slot = (slot + 1) & mask) {
    const Node& each = nodes_[node_table_[slot] - 1];
    if (each.element == element && each.parent == parent) return node_table_[slot] - 1;
  }
  nodes_.push_back({element, parent, parent == kNone ? 1 : nodes_[parent].depth + 1, 0});
  node_table_[slot] = uint32_t(nodes_.size());
  return uint32_t(nodes_.size() - 1);
}

void GrammarMatcher::begin_state() {
  ++epoch_;
  work_.clear();
  tops_.clear();
  accepts_ = false;
}

// Follows rules and ends until bytes or a token come next. Each stack is followed only once, because a rule
// that calls itself as its last element comes back to the same stack.
void GrammarMatcher::expand(uint32_t start) {
  work_.push_back(start);
  while (!work_.empty() && steps_ <= kMaxGrammarSteps) {
    const uint32_t at = work_.back();
    work_.pop_back();
    ++steps_;
    if (nodes_[at].mark == epoch_) continue;
    nodes_[at].mark = epoch_;
    if (nodes_[at].depth > kMaxGrammarDepth) continue;
    const uint32_t parent = nodes_[at].parent, element = nodes_[at].element;
    const GrammarElement& e = grammar_->elements[element];
    if (e.kind == GrammarElement::End) {
      if (parent == kNone)
        accepts_ = true;
      else
        work_.push_back(parent);
    } else if (e.kind == GrammarElement::Rule) {
      const bool last = grammar_->elements[element + 1].kind == GrammarElement::End;
      const uint32_t back = last ? parent : node(element + 1, parent);
      for (uint32_t a = grammar_->rules[e.value]; a < grammar_->rules[e.value + 1]; ++a)
        work_.push_back(node(grammar_->alternatives[a], back));
    } else {
      tops_.push_back(at);
    }
  }
}

Status GrammarMatcher::end_state(uint32_t* out) {
  if (steps_ > kMaxGrammarSteps || tops_.size() > kMaxGrammarStacks)
    return fail(Code::Unsupported,
                "the grammar is too ambiguous: a token takes more than %llu steps, or %u stacks",
                (unsigned long long)kMaxGrammarSteps, kMaxGrammarStacks);
  if (tops_.empty() && !accepts_) return *out = kDead, Status{};
  std::sort(tops_.begin(), tops_.end());
  steps_ += tops_.size();
  const auto hash = [](const uint32_t* stacks, size_t count, bool accepts) {
    uint64_t h = accepts;
    for (size_t i = 0; i < count; ++i) h = mix(h ^ stacks[i]) + i;
    return h;
  };
  grow_table(&state_table_, states_.size(), [&](uint32_t i) {
    return hash(stacks_.data() + states_[i].first, states_[i].count, states_[i].accepts);
  });
  const size_t mask = state_table_.size() - 1;
  size_t slot = hash(tops_.data(), tops_.size(), accepts_) & mask;
  for (; state_table_[slot]; slot = (slot + 1) & mask) {
    const State& s = states_[state_table_[slot] - 1];
    if (s.count == tops_.size() && s.accepts == accepts_ &&
        std::equal(tops_.begin(), tops_.end(), stacks_.begin() + s.first))
      return *out = state_table_[slot] - 1, Status{};
  }
  bool has_tokens = false;
  for (const uint32_t top : tops_)
    has_tokens |= grammar_->elements[nodes_[top].element].kind != GrammarElement::Bytes;
  states_.push_back({uint32_t(stacks_.size()), uint32_t(tops_.size()), accepts_, has_tokens});
  stacks_.insert(stacks_.end(), tops_.begin(), tops_.end());
  transitions_.resize(transitions_.size() + grammar_->class_byte.size(), kNone);
  state_table_[slot] = uint32_t(states_.size());
  return *out = uint32_t(states_.size() - 1), Status{};
}

Status GrammarMatcher::reset() {
  clear();
  steps_ = 0;
  begin_state();
  const Grammar& g = *grammar_;
  for (uint32_t a = g.rules[g.root]; a < g.rules[g.root + 1]; ++a) expand(node(g.alternatives[a], kNone));
  return end_state(&state_);
}

Status GrammarMatcher::next(uint32_t state, uint32_t byte_class, uint32_t* out) {
  const size_t place = state * grammar_->class_byte.size() + byte_class;
  if (transitions_[place] != kNone) return *out = transitions_[place], Status{};
  begin_state();
  const State from = states_[state];
  for (uint32_t i = 0; i < from.count; ++i) {
    const Node top = nodes_[stacks_[from.first + i]];
    const GrammarElement& e = grammar_->elements[top.element];
    if (e.kind == GrammarElement::Bytes && grammar_->sets[e.value][grammar_->class_byte[byte_class]])
      expand(node(top.element + 1, top.parent));
  }
  GRETA_TRY(end_state(out));
  transitions_[place] = *out;
  return {};
}

Status GrammarMatcher::walk(uint32_t state, std::string_view bytes, uint32_t* out) {
  for (const char byte : bytes) {
    if (state == kDead) break;
    GRETA_TRY(next(state, grammar_->byte_class[uint8_t(byte)], &state));
  }
  *out = state;
  return {};
}

// The state after this token: that of the stacks that waited for it.
Status GrammarMatcher::after_token(uint32_t state, int32_t token, uint32_t* out) {
  begin_state();
  const State from = states_[state];
  for (uint32_t i = 0; i < from.count; ++i) {
    const Node top = nodes_[stacks_[from.first + i]];
    const GrammarElement& e = grammar_->elements[top.element];
    const bool same = e.value == uint32_t(token);
    if ((e.kind == GrammarElement::Token && same) || (e.kind == GrammarElement::NotToken && !same))
      expand(node(top.element + 1, top.parent));
  }
  return end_state(out);
}

Status GrammarMatcher::push(std::string_view bytes) {
  return bytes.empty() ? Status{} : push_token(kNoToken, bytes);
}

Status GrammarMatcher::push_token(int32_t token, std::string_view bytes) {
  steps_ = 0;
  compact();
  uint32_t by_bytes = kDead, by_token = kDead;
  if (!bytes.empty()) GRETA_TRY(walk(state_, bytes, &by_bytes));
  if (token != kNoToken && states_[state_].has_tokens) GRETA_TRY(after_token(state_, token, &by_token));
  if (by_bytes == kDead && by_token == kDead)
    return fail(Code::Argument, "the grammar does not allow %s here", Quoted(bytes).c_str());
  if (by_bytes == kDead || by_token == kDead) return state_ = by_bytes | by_token, Status{};
  begin_state();
  for (const uint32_t state : {by_bytes, by_token}) {
    for (uint32_t i = 0; i < states_[state].count; ++i) tops_.push_back(stacks_[states_[state].first + i]);
    accepts_ = accepts_ || states_[state].accepts;
  }
  std::sort(tops_.begin(), tops_.end());
  tops_.erase(std::unique(tops_.begin(), tops_.end()), tops_.end());
  return end_state(&state_);
}

bool GrammarMatcher::is_over() const { return states_[state_].count == 0; }

namespace {

void set_bit(std::span<uint64_t> bits, int32_t token) {
  if (uint32_t(token) / 64 < bits.size()) bits[uint32_t(token) / 64] |= uint64_t(1) << (uint32_t(token) % 64);
}

}  // namespace

Status GrammarMatcher::mask(const VocabTrie& trie, std::span<uint64_t> bits) {
  steps_ = visited_ = 0;
  compact();
  for (const Mask& kept : masks_)
    if (kept.state == state_ && kept.bits.size() == bits.size())
      return std::copy(kept.bits.begin(), kept.bits.end(), bits.begin()), Status{};
  std::fill(bits.begin(), bits.end(), 0);
  const auto allow = [&](int32_t token) { set_bit(bits, token); };
  std::vector<uint32_t> path(trie.longest + 1, kDead);
  path[0] = state_;
  for (uint32_t i = 0; i < trie.nodes.size(); ++visited_) {
    const VocabTrie::Node& at = trie.nodes[i];
    const uint32_t from = path[at.depth - 1], byte_class = grammar_->byte_class[at.byte];
    uint32_t to = transitions_[from * grammar_->class_byte.size() + byte_class];
    if (to == kNone) GRETA_TRY(next(from, byte_class, &to));
    if (to == kDead) {
      i = at.skip;
      continue;
    }
    path[at.depth] = to;
    if (at.token != kNoToken) {
      allow(at.token);
      if (at.more) trie.each_twin(at.token, allow);
    }
    ++i;
  }
  if (states_[state_].has_tokens) find_tokens(trie, bits);
  if (visited_ < kMaskWorthKeeping) return {};
  Mask& kept = masks_[next_mask_++ % kKeptMasks];
  kept.state = kNone;  // until its bits are those of the state
  kept.bits.assign(bits.begin(), bits.end());
  kept.state = state_;
  return {};
}

// Sets the bits of tokens that the grammar names.
void GrammarMatcher::find_tokens(const VocabTrie& trie, std::span<uint64_t> bits) const {
  for (uint32_t i = 0; i < states_[state_].count; ++i) {
    const GrammarElement& e = grammar_->elements[nodes_[stacks_[states_[state_].first + i]].element];
    if (e.kind == GrammarElement::Token) set_bit(bits, int32_t(e.value));
    if (e.kind == GrammarElement::NotToken)
      for (const int32_t token : trie.all)
        if (uint32_t(token) != e.value) set_bit(bits, token);
  }
}

// Forgets all states but the current one if there are too many.
void GrammarMatcher::compact() {
  if (nodes_.size() < kMaxNodes && states_.size() < kMaxStates) return;
  const std::vector<Node> nodes = std::move(nodes_);
  const State state = states_[state_];
  const std::vector<uint32_t> tops(stacks_.begin() + state.first,
                                   stacks_.begin() + state.first + state.count);
  clear();
  begin_state();
  std::vector<uint32_t> chain;
  for (const uint32_t top : tops) {
    chain.clear();
    for (uint32_t at = top; at != kNone; at = nodes[at].parent) chain.push_back(at);
    uint32_t parent = kNone;
    for (; !chain.empty(); chain.pop_back()) parent = node(nodes[chain.back()].element, parent);
    tops_.push_back(parent);
  }
  accepts_ = state.accepts;
  steps_ = 0;
  if (!end_state(&state_).ok()) state_ = kDead;  // it fitted before
}

}  // namespace greta
