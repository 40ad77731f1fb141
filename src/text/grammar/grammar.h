// Grammars in llama.cpp's GBNF, compiled to bytes. A grammar says what a text may be, so that a matcher can
// tell which tokens may come next.
//
// A Grammar has rules of alternatives of elements. An element is a set of bytes, a rule, or a token.
// Characters are their UTF-8 bytes, so a token may end anywhere within one. A GrammarMatcher walks through it
// as a pushdown automaton that is made deterministic as it goes: a state is the set of all stacks that are
// possible after the same bytes, and the next state for each class of bytes is remembered.
//
// Grammars are untrusted input. Their size, their repetitions, the work for a token and the depth of nesting
// are limited. Left recursion, which would need endless stacks, is refused.
#pragma once
#include <array>
#include <bitset>
#include <memory>
#include <string_view>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace greta {

constexpr uint64_t kMaxGrammarBytes = 1u << 20;  // of text
constexpr uint32_t kMaxGrammarRules = 1u << 17;
constexpr uint32_t kMaxGrammarElements = 1u << 20;
constexpr uint32_t kMaxGrammarRepeats = 100000;  // {m,n}
constexpr uint32_t kMaxGrammarNesting = 200;     // of parentheses
constexpr uint32_t kMaxGrammarDepth = 2000;   // of rules within rules in a text; deeper texts are not allowed
constexpr uint32_t kMaxGrammarStacks = 2000;  // in one state
constexpr uint64_t kMaxGrammarSteps = 1u << 22;  // of work for one token

using ByteSet = std::bitset<256>;

struct GrammarElement {
  enum Kind : uint8_t { End, Bytes, Rule, Token, NotToken };
  Kind kind;
  uint32_t value;  // index of the set or rule, id of the token
  bool operator==(const GrammarElement&) const = default;
};

struct Grammar {
  std::vector<GrammarElement> elements;  // of all alternatives, each of which closes with an End
  std::vector<uint32_t> alternatives;    // the first element of each, rule by rule
  std::vector<uint32_t> rules;           // where the alternatives of each rule begin; one more at the end
  std::vector<ByteSet> sets;
  std::array<uint8_t, 256> byte_class;  // bytes of one class are in the same sets
  std::vector<uint8_t> class_byte;      // one byte of each class
  uint32_t root = 0;
  bool is_schema = false;  // it was made from a JSON schema, and so has no marks of chats
};

// Errors name the line. The tokenizer looks up the texts of <token>; without one these are refused.
Status parse_grammar(std::string_view text, std::string_view root, const Tokenizer* tokenizer,
                     std::shared_ptr<const Grammar>* out);

class GrammarMatcher {
 public:
  explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar);
  const std::shared_ptr<const Grammar>& grammar() const { return grammar_; }
  Status reset();                       // goes back to the beginning
  Status push(std::string_view bytes);  // fails, and changes nothing, if they cannot come next
  Status push_token(int32_t token, std::string_view bytes);
  bool may_end() const { return states_[state_].accepts; }
  bool is_over() const;  // returns true if nothing can follow

  // Sets the bits of the tokens that may come next, [ceil(vocab / 64)]; the rest is cleared. A matcher is
  // asked for one vocabulary only.
  Status mask(const VocabTrie& trie, std::span<uint64_t> bits);
  uint64_t visited() const { return visited_; }  // how many nodes of the trie the last mask visited

 private:
  // A stack: the element that is next, and the stack below it. Equal stacks are one node.
  struct Node {
    uint32_t element, parent, depth, mark;
  };
  struct State {
    uint32_t first, count;
    bool accepts, has_tokens;
  };
  struct Mask {
    uint32_t state = kNone;
    std::vector<uint64_t> bits;
  };
  static constexpr uint32_t kNone = ~0u, kDead = 0;
  static constexpr size_t kKeptMasks = 8;

  uint32_t node(uint32_t element, uint32_t parent);
  void expand(uint32_t node);  // into stacks that wait for bytes or a token
  void begin_state();
  Status end_state(uint32_t* state);
  Status next(uint32_t state, uint32_t byte_class, uint32_t* out);
  Status after_token(uint32_t state, int32_t token, uint32_t* out);
  Status walk(uint32_t state, std::string_view bytes, uint32_t* out);
  void find_tokens(const VocabTrie& trie, std::span<uint64_t> bits) const;
  void compact();
  void clear();

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> node_table_;  // open addressing, index + 1
  std::vector<State> states_;
  std::vector<uint32_t> stacks_;  // of all states, ascending in each
  std::vector<uint32_t> state_table_;
  std::vector<uint32_t> transitions_;  // [states][classes], kNone where not known yet
  uint32_t state_ = kDead;
  std::array<Mask, kKeptMasks> masks_;  // those that took the most work lately
  size_t next_mask_ = 0;

  // The parts of the state that is being made.
  std::vector<uint32_t> work_, tops_;
  uint32_t epoch_ = 0;
  bool accepts_ = false;
  uint64_t steps_ = 0, visited_ = 0;
};

}  // namespace greta
