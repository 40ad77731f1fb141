// Pre-tokenizers, which cut a text into words. Byte pairs are merged only within a word. tokenizer.ggml.pre
// names the pre-tokenizer.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer/scan.h"

namespace greta {

// Appends to `out` the ends of the pieces that it cuts `text` into.
using Cut = void(std::string_view text, Pieces out);

constexpr uint32_t kMaxCuts = 6;

enum SplitFlags : uint32_t {
  kWholeWords = 1,  // a word that is a token is that token, whatever the merges say
  kAddBos = 2,      // a text begins with BOS, unless tokenizer.ggml.add_bos_token says otherwise
  kCharacters = 4,  // characters are merged, not bytes; a space is written as U+2581
  kNewlineRuns = 8  // a run of newlines that is a token is that token
};

struct SplitRule {
  std::string_view names;  // with spaces between them
  Cut* cuts[kMaxCuts];     // each cuts the pieces that the one before made; null after the last
  uint32_t flags;
  bool has(SplitFlags flag) const { return flags & flag; }
};

std::span<const SplitRule> split_rules();
const SplitRule* find_split_rule(std::string_view name);  // null if unknown
const SplitRule& default_split_rule();

// Appends the end of each word of `text`, which is valid UTF-8. The words follow each other without gaps.
// Words of Falcon's rule may end within a character.
void split_words(const SplitRule& rule, std::string_view text, std::vector<uint32_t>* ends);

// The cuts. Above the definition of each stands the regular expression that it stands for.
Cut cut_gpt2, cut_llama3, cut_qwen2, cut_qwen35, cut_minicpm5, cut_seed_coder, cut_ufakzeka, cut_exaone_moe,
    cut_jais2, cut_gpt4o, cut_tekken, cut_kimi, cut_youtu, cut_deepseek3, cut_spark, cut_bloom;  // words.cpp
Cut cut_lines, cut_newlines, cut_digits, cut_numbers, cut_number_bytes, cut_up_to_three, cut_three_digits,
    cut_thousands, cut_thousands_before_words, cut_before_thousands, cut_punctuation, cut_default_punctuation,
    cut_trailing_space, cut_deepseek_letters, cut_deepseek_marks, cut_coder_letters, cut_coder_punctuation,
    cut_deepseek_han, cut_deepseek3_han, cut_youtu_han, cut_afmoe_scripts, cut_sentinels, cut_images,
    cut_tabs, cut_each_punctuation;  // cuts.cpp

}  // namespace greta
