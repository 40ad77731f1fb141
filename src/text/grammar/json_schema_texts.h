// Sets of texts, as deterministic automata over characters: what patterns, formats, lengths and names say of
// a JSON string. They can be intersected and subtracted, and become rules of a grammar.
//
// Patterns come from outside, so the number of states and the work to make them are limited.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/platform.h"
#include "text/grammar/build.h"

namespace greta {

class TextSet {
 public:
  static constexpr uint32_t kMaxStates = 6000;
  static constexpr uint32_t kNoLimit = ~0u;

  // The texts in which a regular expression of ECMA-262 matches somewhere, unless ^ and $ hold it.
  static Status matching(std::string_view pattern, TextSet* out);
  static Status among(std::span<const std::string_view> texts, TextSet* out);
  static TextSet all();

  Status intersect(const TextSet& other, TextSet* out) const { return combine(other, true, out); }
  Status subtract(const TextSet& other, TextSet* out) const { return combine(other, false, out); }
  // Keeps texts of `least` to `most` characters. Where that takes too many states, it keeps fewer long ones.
  Status limit(uint32_t least, uint32_t most, TextSet* out) const;

  bool empty() const { return states_.empty(); }
  bool has(std::string_view text) const;

  // Appends rules, `name`0 first, for a text between the quotes of a JSON string. Each character has one
  // spelling.
  void append_rules(const std::string& name, std::string* out) const;

 private:
  friend class TextSetMaker;
  struct Edge {
    uint32_t first, last, to;  // characters, and the state behind them
  };
  struct State {
    bool accepts = false;
    std::vector<Edge> edges = {};  // ascending, without overlaps
  };
  Status combine(const TextSet& other, bool both, TextSet* out) const;
  void prune();                // removes states from which no text ends
  std::vector<State> states_;  // the first one is the start; none: the set is empty
};

}  // namespace greta
