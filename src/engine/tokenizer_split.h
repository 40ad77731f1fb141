// Pre-tokenizers: how the text is cut into words before byte pairs are merged within each. One row
// for each value of tokenizer.ggml.pre.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace greta {

struct SplitRule {
  const char* name;
  // Appends the end of each word of `text` (valid UTF-8): the words follow each other without gaps.
  void (*split)(std::string_view text, std::vector<uint32_t>* ends);
  bool whole_words;  // a word that is a token is that token, whatever the merges say
  bool add_bos;      // unless tokenizer.ggml.add_bos_token says otherwise
};

const SplitRule* find_split_rule(std::string_view name);  // null if unknown
const SplitRule& default_split_rule();                    // GPT-2's

}  // namespace greta
