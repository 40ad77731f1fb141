// The pre-tokenizers by name. Names, cuts and flags are those of the models' own tokenizer.json, and of
// llama.cpp's converter, which gave them their names.
#include "text/tokenizer/split.h"

#include <algorithm>

namespace greta {
namespace {

constexpr uint32_t kLlama3 = kWholeWords | kAddBos;
constexpr uint32_t kGemma4 = kCharacters | kNewlineRuns | kAddBos;

constexpr SplitRule kRules[] = {
    // What llama.cpp does when a file names no pre-tokenizer.
    {"default", {cut_default_punctuation, cut_gpt2, cut_numbers, cut_three_digits}, 0},

    {"gpt-2", {cut_gpt2}, 0},
    {"phi-2", {cut_gpt2}, 0},
    {"mpt", {cut_gpt2}, 0},
    {"olmo", {cut_gpt2}, 0},
    {"jais", {cut_gpt2}, 0},
    {"trillion", {cut_gpt2}, 0},
    {"granite-docling", {cut_gpt2}, 0},
    {"exaone4", {cut_gpt2}, 0},
    {"gigachat", {cut_gpt2}, 0},
    {"a.x-4.0", {cut_gpt2}, 0},
    {"mellum", {cut_gpt2}, 0},
    {"modern-bert", {cut_gpt2}, 0},
    {"roberta-bpe", {cut_gpt2}, 0},
    {"jina-es", {cut_gpt2}, 0},
    {"jina-de", {cut_gpt2}, 0},
    {"jina-v1-en", {cut_gpt2}, 0},
    {"jina-v2-es", {cut_gpt2}, 0},
    {"jina-v2-de", {cut_gpt2}, 0},
    {"jina-v2-code", {cut_gpt2}, 0},

    {"starcoder", {cut_digits, cut_gpt2}, 0},
    {"refact", {cut_digits, cut_gpt2}, 0},
    {"command-r", {cut_digits, cut_gpt2}, 0},
    {"smollm", {cut_digits, cut_gpt2}, 0},
    {"codeshell", {cut_digits, cut_gpt2}, 0},
    {"exaone", {cut_digits, cut_gpt2}, 0},
    {"minerva-7b", {cut_digits, cut_gpt2}, 0},
    {"mellum2", {cut_digits, cut_gpt2}, 0},

    {"llama-bpe", {cut_llama3}, kLlama3},
    {"llama3", {cut_llama3}, kLlama3},
    {"llama-v3", {cut_llama3}, kLlama3},
    {"falcon3", {cut_llama3}, kLlama3},
    {"falcon-h1", {cut_llama3}, kLlama3},
    {"pixtral", {cut_llama3}, kLlama3},
    {"midm-2.0", {cut_llama3}, kLlama3},
    {"lfm2", {cut_llama3}, kLlama3},
    {"jina-v5-nano", {cut_llama3}, kLlama3},
    {"dbrx", {cut_llama3}, 0},
    {"smaug-bpe", {cut_llama3}, 0},
    {"glm4", {cut_llama3}, 0},
    {"chatglm-bpe", {cut_llama3}, 0},
    {"jais-2", {cut_jais2}, 0},
    {"minicpm5", {cut_up_to_three, cut_minicpm5}, kWholeWords},

    {"qwen2", {cut_qwen2}, 0},
    {"deepseek-r1-qwen", {cut_qwen2}, 0},
    {"stablelm2", {cut_qwen2}, 0},
    {"hunyuan", {cut_qwen2}, 0},
    {"megrez", {cut_qwen2}, 0},
    {"kormo", {cut_qwen2}, 0},
    {"f2llmv2", {cut_qwen2}, 0},
    {"grok-2", {cut_qwen2}, 0},
    {"solar-open", {cut_qwen2}, 0},
    {"bailingmoe", {cut_qwen2}, 0},
    {"bailingmoe2", {cut_qwen2}, 0},
    {"llada-moe", {cut_qwen2}, 0},
    {"laguna", {cut_lines, cut_qwen2}, 0},
    {"qwen35", {cut_qwen35}, 0},
    {"seed-coder", {cut_seed_coder}, 0},
    {"ufakzeka", {cut_ufakzeka}, 0},
    {"exaone-moe", {cut_exaone_moe}, 0},

    {"gpt-4o", {cut_gpt4o}, 0},
    {"llama4", {cut_gpt4o}, 0},
    {"kanana2", {cut_gpt4o}, 0},
    {"talkie", {cut_gpt4o}, 0},
    {"minimax-m2", {cut_gpt4o}, 0},
    {"granite-embed-multi-97m", {cut_gpt4o}, kWholeWords},
    {"tiny_aya", {cut_thousands_before_words, cut_gpt4o}, 0},
    {"cohere2moe", {cut_thousands_before_words, cut_gpt4o}, 0},
    {"tekken", {cut_tekken}, kLlama3},
    {"kimi-k2", {cut_kimi}, 0},
    {"youtu", {cut_youtu_han, cut_youtu}, kWholeWords},

    {"deepseek-llm",
     {cut_newlines, cut_deepseek_letters, cut_deepseek_marks, cut_trailing_space, cut_deepseek_han,
      cut_digits},
     0},
    {"deepseek-coder",
     {cut_newlines, cut_coder_letters, cut_coder_punctuation, cut_deepseek_han, cut_digits},
     0},
    {"deepseek-v3", {cut_up_to_three, cut_deepseek3_han, cut_deepseek3}, 0},
    {"hunyuan-dense", {cut_up_to_three, cut_deepseek3_han, cut_deepseek3}, 0},
    {"joyai-llm", {cut_up_to_three, cut_deepseek3_han, cut_deepseek3}, 0},
    {"hy_v4", {cut_up_to_three, cut_deepseek3_han, cut_deepseek3}, 0},
    {"spark2_5", {cut_up_to_three, cut_deepseek3_han, cut_spark, cut_digits}, 0},
    {"afmoe", {cut_thousands, cut_afmoe_scripts, cut_deepseek3}, 0},

    {"falcon", {cut_punctuation, cut_gpt2, cut_number_bytes, cut_three_digits}, 0},
    {"bloom", {cut_bloom}, 0},
    {"poro-chat", {cut_bloom}, 0},
    {"gpt3-finnish", {cut_bloom}, 0},
    {"viking", {cut_bloom, cut_digits}, 0},
    {"superbpe", {cut_numbers, cut_before_thousands}, 0},
    {"chameleon", {cut_sentinels, cut_images, cut_tabs, cut_digits, cut_each_punctuation, cut_gpt2}, kAddBos},

    {"gemma4", {cut_lines}, kGemma4},
    {"granite-embed-multi-311m", {cut_lines}, kGemma4},
    {"sarvam-moe", {cut_lines}, kCharacters},
};

}  // namespace

std::span<const SplitRule> split_rules() { return kRules; }

const SplitRule* find_split_rule(std::string_view name) {
  for (const SplitRule& rule : kRules)
    if (name == rule.name) return &rule;
  return nullptr;
}

const SplitRule& default_split_rule() { return kRules[0]; }

void split_words(const SplitRule& rule, std::string_view text, std::vector<uint32_t>* ends) {
  if (text.empty()) return;
  rule.cuts[0](text, {ends, 0});
  std::vector<uint32_t> before;
  for (uint32_t i = 1; i < kMaxCuts && rule.cuts[i]; ++i) {
    before.swap(*ends);
    ends->clear();
    uint32_t start = 0;
    for (const uint32_t end : before) {
      rule.cuts[i](text.substr(start, end - start), {ends, start});
      start = end;
    }
  }
}

}  // namespace greta
