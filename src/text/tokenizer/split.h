// Pre-tokenizers: how the text is cut into words before byte pairs are merged within each. One row
// for each value of tokenizer.ggml.pre.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer/scan.h"

namespace greta {

using Cut = void (*)(std::string_view text, Pieces out);

constexpr uint32_t kMaxCuts = 6;

enum SplitFlags : uint32_t {
  kWholeWords = 1,  // a word that is a token is that token, whatever the merges say
  kAddBos = 2,      // unless tokenizer.ggml.add_bos_token says otherwise
  kCharacters = 4,  // merges characters, not bytes; a space is written as U+2581
  kNewlineRuns = 8  // a run of newlines that is a token is that token
};

struct SplitRule {
  const char* name;
  Cut cuts[kMaxCuts];  // each cuts the pieces that the one before left; null: no more
  uint32_t flags;
  bool has(SplitFlags flag) const { return flags & flag; }
};

std::span<const SplitRule> split_rules();
const SplitRule* find_split_rule(std::string_view name);  // null if unknown
const SplitRule& default_split_rule();

// Appends the end of each word of `text` (valid UTF-8): the words follow each other without gaps. Falcon's
// may end within a character.
void split_words(const SplitRule& rule, std::string_view text, std::vector<uint32_t>* ends);

// The cuts, by what they match (tokenizer_words.cpp, tokenizer_cuts.cpp: the expressions stand there).
void cut_gpt2(std::string_view text, Pieces out);
void cut_llama3(std::string_view text, Pieces out);
void cut_qwen2(std::string_view text, Pieces out);
void cut_qwen35(std::string_view text, Pieces out);
void cut_minicpm5(std::string_view text, Pieces out);
void cut_seed_coder(std::string_view text, Pieces out);
void cut_ufakzeka(std::string_view text, Pieces out);
void cut_exaone_moe(std::string_view text, Pieces out);
void cut_jais2(std::string_view text, Pieces out);
void cut_gpt4o(std::string_view text, Pieces out);
void cut_tekken(std::string_view text, Pieces out);
void cut_kimi(std::string_view text, Pieces out);
void cut_youtu(std::string_view text, Pieces out);
void cut_deepseek3(std::string_view text, Pieces out);
void cut_spark(std::string_view text, Pieces out);
void cut_bloom(std::string_view text, Pieces out);

void cut_lines(std::string_view text, Pieces out);
void cut_newlines(std::string_view text, Pieces out);
void cut_digits(std::string_view text, Pieces out);
void cut_numbers(std::string_view text, Pieces out);
void cut_number_bytes(std::string_view text, Pieces out);
void cut_up_to_three(std::string_view text, Pieces out);
void cut_three_digits(std::string_view text, Pieces out);
void cut_thousands(std::string_view text, Pieces out);
void cut_thousands_before_words(std::string_view text, Pieces out);
void cut_before_thousands(std::string_view text, Pieces out);
void cut_punctuation(std::string_view text, Pieces out);
void cut_default_punctuation(std::string_view text, Pieces out);
void cut_trailing_space(std::string_view text, Pieces out);
void cut_deepseek_letters(std::string_view text, Pieces out);
void cut_deepseek_marks(std::string_view text, Pieces out);
void cut_coder_letters(std::string_view text, Pieces out);
void cut_coder_punctuation(std::string_view text, Pieces out);
void cut_deepseek_han(std::string_view text, Pieces out);
void cut_deepseek3_han(std::string_view text, Pieces out);
void cut_youtu_han(std::string_view text, Pieces out);
void cut_afmoe_scripts(std::string_view text, Pieces out);
void cut_sentinels(std::string_view text, Pieces out);
void cut_images(std::string_view text, Pieces out);
void cut_tabs(std::string_view text, Pieces out);
void cut_each_punctuation(std::string_view text, Pieces out);

}  // namespace greta
