// How families of models mark the parts of their answers.
#include <algorithm>

#include "text/chat/channels.h"
#include "text/chat/parser.h"
#include "text/chat/text.h"

namespace greta {

using Kind = ChatSection::Kind;

namespace {

constexpr ChatSection kSections[] = {
    // Qwen 3, DeepSeek R1, GLM, Granite 3.3, SmolLM 3, MiniMax, Nemotron, ...
    {Kind::Reasoning, "</think>", "<think>", "</think>"},
    {Kind::Reasoning, "[THINK]", "[THINK]", "[/THINK]"},                                // Ministral
    {Kind::Reasoning, "<seed:think>", "<seed:think>", "</seed:think>"},                 // Seed-OSS
    {Kind::Reasoning, "<|START_THINKING|>", "<|START_THINKING|>", "<|END_THINKING|>"},  // Command R7B
    {Kind::Reasoning, "<|channel>thought", "<|channel>thought", "<channel|>"},          // Gemma 4
    {Kind::Reasoning, "<|inner_prefix|>", "<|inner_prefix|>", "<|inner_suffix|>"},      // Apertus
    {Kind::Reasoning, "</thinking>", "<thinking>", "</thinking>"},
    {Kind::Reasoning, "</thought>", "<thought>", "</thought>"},

    {Kind::Answer, "<response>", "<response>", "</response>"},                       // Granite 3.3
    {Kind::Answer, "<answer>", "<answer>", "</answer>"},                             // Hunyuan
    {Kind::Answer, "<|START_RESPONSE|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"},  // Command R7B

    {Kind::Calls, "<tool_call>", "<tool_call>", "</tool_call>"},                 // Hermes, Qwen, GLM
    {Kind::Calls, "<function=", "<function=", "</function>", true},              // Qwen 3 Coder, bare
    {Kind::Calls, "<tool_calls>", "<tool_calls>", "</tool_calls>"},              // Apriel
    {Kind::Calls, "<TOOLCALL>", "<TOOLCALL>", "</TOOLCALL>"},                    // Nemotron
    {Kind::Calls, "<toolcall>", "<toolcall>", "</toolcall>"},                    // Nemotron Mini
    {Kind::Calls, "<seed:tool_call>", "<seed:tool_call>", "</seed:tool_call>"},  // Seed-OSS
    {Kind::Calls, "<minimax:tool_call>", "<minimax:tool_call>", "</minimax:tool_call>"},        // MiniMax
    {Kind::Calls, "<|tools_prefix|>", "<|tools_prefix|>", "<|tools_suffix|>"},                  // Apertus
    {Kind::Calls, "<|START_ACTION|>", "<|START_ACTION|>", "<|END_ACTION|>"},                    // Command R7B
    {Kind::Calls, "<|tool_call_start|>", "<|tool_call_start|>", "<|tool_call_end|>"},           // LFM2
    {Kind::Calls, "<|tool_call>", "<|tool_call>", "<tool_call|>"},                              // Gemma 4
    {Kind::Calls, "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},  // DeepSeek
    {Kind::Calls, "｜DSML｜", "<｜DSML｜function_calls>", "</｜DSML｜function_calls>"},  // DeepSeek V3.2
    {Kind::Calls, "<|tool_calls_section_begin|>", "<|tool_calls_section_begin|>",
     "<|tool_calls_section_end|>"},                                                        // Kimi K2
    {Kind::Calls, "<|function_call|>", "<|function_call|>", "<|message_sep|>"},            // GigaChat 3
    {Kind::Calls, "<|tool_calls|>", "<|tool_calls|>", "<|calls|>"},                        // Solar
    {Kind::Calls, "Action:\\n```json", "Action:\n```json", "```"},                         // Command R+
    {Kind::Calls, "functools[", "functools", ""},                                          // FireFunction
    {Kind::Calls, "<|tool_call|>", "<|tool_call|>", ""},                                   // Granite 3
    {Kind::Calls, "[TOOL_CALLS]", "[TOOL_CALLS]", ""},                                     // Mistral
    {Kind::Calls, "<|python_tag|>", "<|python_tag|>", ""},                                 // Llama 3.1
    {Kind::Calls, "<|python_start|>", "<|python_start|>", "<|python_end|>", false, true},  // Llama 4
};

}  // namespace

ChatForm chat_form(std::string_view chat_template) {
  const auto has = [&](std::string_view text) { return chat_template.find(text) != chat_template.npos; };
  ChatForm form;
  form.addressed = has(kStart) && has(kMessage) && has("<atem:invoke");
  form.channels = form.addressed || (has(kChannel) && has(kMessage));
  if (form.channels) return form;
  for (const ChatSection& section : kSections)
    if (has(section.in_template)) form.sections.push_back(&section);
  const bool llama3 = has("<|start_header_id|>") && (has("\"parameters\":") || has("<|python_tag|>"));
  const bool llama4 = has("<|header_start|>") && has("\"parameters\":");
  form.bare_calls = (llama3 || llama4) && !has("<tool_call>");
  form.named_calls = has("[gMASK]") && !has("<tool_call>");
  const auto is_calls = [](const ChatSection* section) { return section->kind == Kind::Calls; };
  form.any_calls = !form.bare_calls && std::none_of(form.sections.begin(), form.sections.end(), is_calls);
  if (form.any_calls)
    for (const ChatSection& section : kSections)
      if (is_calls(&section)) form.sections.push_back(&section);
  return form;
}

bool ChatForm::is_mark(std::string_view text) const {
  if (channels) return is_channel_mark(text);
  for (const ChatSection* section : sections)
    if (section->open.starts_with(text) || section->close == text) return true;
  return is_call_mark(text);
}

std::vector<std::string_view> answer_marks() {
  std::vector<std::string_view> marks{kMessage};
  for (const ChatSection& section : kSections)
    for (const std::string_view mark : {section.open, section.close})
      if (mark.starts_with('<') || mark.starts_with('[')) marks.push_back(mark);
  return marks;
}

namespace {

std::string_view without_blanks_behind(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

}  // namespace

bool ChatForm::reasons() const {
  return std::ranges::any_of(sections, [](const ChatSection* s) { return s->kind == Kind::Reasoning; });
}

bool ChatForm::closed_by(std::string_view prompt) const {
  prompt = without_blanks_behind(prompt);
  return std::ranges::any_of(sections, [&](const ChatSection* section) {
    return section->kind == Kind::Reasoning && prompt.ends_with(section->close);
  });
}

const ChatSection* ChatForm::opened_by(std::string_view prompt) const {
  prompt = without_blanks_behind(prompt);
  for (const ChatSection* section : sections)
    if (section->kind == Kind::Reasoning && prompt.ends_with(section->open)) return section;
  return nullptr;
}

}  // namespace greta
