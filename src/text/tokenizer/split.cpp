// The pre-tokenizers by name. Cuts and flags are those of the models' own tokenizer.json; the names are those
// that llama.cpp's converter writes.
#include "text/tokenizer/split.h"

#include <string>

namespace greta {
namespace {

constexpr uint32_t kLlama3 = kWholeWords | kAddBos;
constexpr uint32_t kGemma4 = kCharacters | kNewlineRuns | kAddBos;

constexpr SplitRule kRules[] = {
    // llama.cpp does this when a file names no pre-tokenizer.
    {"default", {cut_default_punctuation, cut_gpt2, cut_numbers, cut_three_digits}, 0},

    {"gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat a.x-4.0 "
     "mellum modern-bert roberta-bpe jina-es jina-de jina-v1-en jina-v2-es jina-v2-de "
     "jina-v2-code",
     {cut_gpt2},
     0},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", {cut_digits, cut_gpt2}, 0},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", {cut_llama3}, kLlama3},
    {"dbrx smaug-bpe glm4 chatglm-bpe", {cut_llama3}, 0},
    {"jais-2", {cut_jais2}, 0},
    {"minicpm5", {cut_up_to_three, cut_minicpm5}, kWholeWords},
    {"qwen2 deepseek-r1-qwen stablelm2 hunyuan megrez kormo f2llmv2 grok-2 solar-open "
     "bailingmoe bailingmoe2 llada-moe",
     {cut_qwen2},
     0},
    {"laguna", {cut_lines, cut_qwen2}, 0},
    {"qwen35", {cut_qwen35}, 0},
    {"seed-coder", {cut_seed_coder}, 0},
    {"ufakzeka", {cut_ufakzeka}, 0},
    {"exaone-moe", {cut_exaone_moe}, 0},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", {cut_gpt4o}, 0},
    {"granite-embed-multi-97m", {cut_gpt4o}, kWholeWords},
    {"tiny_aya cohere2moe", {cut_thousands_before_words, cut_gpt4o}, 0},
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
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", {cut_up_to_three, cut_deepseek3_han, cut_deepseek3}, 0},
    {"spark2_5", {cut_up_to_three, cut_deepseek3_han, cut_spark, cut_digits}, 0},
    {"afmoe", {cut_thousands, cut_afmoe_scripts, cut_deepseek3}, 0},
    {"falcon", {cut_punctuation, cut_gpt2, cut_number_bytes, cut_three_digits}, 0},
    {"bloom poro-chat gpt3-finnish", {cut_bloom}, 0},
    {"viking", {cut_bloom, cut_digits}, 0},
    {"superbpe", {cut_numbers, cut_before_thousands}, 0},
    {"chameleon", {cut_sentinels, cut_images, cut_tabs, cut_digits, cut_each_punctuation, cut_gpt2}, kAddBos},
    {"gemma4 granite-embed-multi-311m", {cut_lines}, kGemma4},
    {"sarvam-moe", {cut_lines}, kCharacters},
};

}  // namespace

std::span<const SplitRule> split_rules() { return kRules; }

const SplitRule* find_split_rule(std::string_view name) {
  if (name.find(' ') != name.npos) return nullptr;
  for (const SplitRule& rule : kRules)
    if ((' ' + std::string(rule.names) + ' ').find(' ' + std::string(name) + ' ') != name.npos) return &rule;
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
