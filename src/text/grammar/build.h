// A grammar while it is read: rules grow, and characters become bytes.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "text/grammar/grammar.h"

namespace greta {

struct CharRange {
  uint32_t first, last;  // code points
};

class GrammarBuilder {
 public:
  using Sequence = std::vector<GrammarElement>;

  Status add_rule(uint32_t* rule);                        // a new one, without a name and alternatives
  Status rule_of(std::string_view name, uint32_t* rule);  // the same rule for the same name
  void define(uint32_t rule, std::vector<Sequence> alternatives) { rules_[rule] = std::move(alternatives); }
  bool is_defined(uint32_t rule) const { return !rules_[rule].empty(); }
  const std::string& name(uint32_t rule) const { return names_[rule]; }

  Status append_bytes(const ByteSet& set, Sequence* out);
  Status append_text(std::string_view text, Sequence* out);
  // Appends one character of these ranges, or any other one if `negated`.
  Status append_class(std::vector<CharRange> ranges, bool negated, Sequence* out);
  // Appends `item` at least `least` and at most `most` times. kNoLimit means any number of times.
  static constexpr uint32_t kNoLimit = ~0u;
  Status repeat(const Sequence& item, uint32_t least, uint32_t most, Sequence* out);

  // Appends text up to and with the first `mark`, which the token `token`, unless it is kNoToken, also stands
  // for. No other control token may come.
  Status append_until(std::string_view mark, int32_t token, Sequence* out);
  // Appends any text, even none, that does not have the mark in it. No control token may come.
  Status append_without(std::string_view mark, Sequence* out);
  Status append_grammar(const Grammar& grammar, Sequence* out);  // its root

  // Checks that all rules are defined and none is left-recursive.
  Status finish(uint32_t root, std::shared_ptr<const Grammar>* out);

 private:
  static constexpr uint32_t kBlock = 256;
  // What may come behind the beginnings of a mark: up to it, or without it.
  Status append_scan(std::string_view mark, int32_t token, bool without, Sequence* out);
  Status repeat_blocks(GrammarElement once, GrammarElement block, uint32_t most, Sequence* out);
  Status count_elements(size_t more);
  Status check_rules(uint32_t root) const;
  Status check_left_recursion() const;
  std::vector<bool> nullable() const;

  std::vector<std::vector<Sequence>> rules_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint32_t> by_name_;
  std::vector<ByteSet> sets_;
  std::unordered_map<ByteSet, uint32_t> by_set_;
  size_t elements_ = 0;
};

}  // namespace greta
