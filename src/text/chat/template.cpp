#include "text/chat/template.h"

#include <algorithm>

namespace greta {
namespace {

// Plain formats for files without a template. The first row whose tokens are in the vocabulary is taken; the
// last row needs none.
struct Fallback {
  const char* name;
  const char* marks[2];
  const char* text;
};
constexpr Fallback kFallbacks[] = {
    {"Llama 3",
     {"<|start_header_id|>", "<|eot_id|>"},
     "{{ bos_token }}{% for m in messages %}"
     "{{ '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\\n\\n' ~ m.content | trim ~ '<|eot_id|>' }}"
     "{% endfor %}{% if add_generation_prompt %}"
     "{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"},
    {"Gemma",
     {"<start_of_turn>", "<end_of_turn>"},
     "{{ bos_token }}{% for m in messages %}{% set role = 'model' if m.role == 'assistant' else 'user' %}"
     "{{ '<start_of_turn>' ~ role ~ '\\n' ~ m.content | trim ~ '<end_of_turn>\\n' }}"
     "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"},
    {"Phi-3",
     {"<|end|>", "<|assistant|>"},
     "{{ bos_token }}{% for m in messages %}{{ '<|' ~ m.role ~ '|>\\n' ~ m.content ~ '<|end|>\\n' }}"
     "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"},
    {"Mistral",
     {"[INST]", "[/INST]"},
     "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}{{ ' ' ~ m.content ~ eos_token }}"
     "{% else %}{{ '[INST] ' ~ m.content ~ ' [/INST]' }}{% endif %}{% endfor %}"},
    {"ChatML",
     {},
     "{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' }}"
     "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"},
};

constexpr char kKey[] = "tokenizer.chat_template";
constexpr char kToolKey[] = "tokenizer.chat_template.tool_use";

bool fits(const Fallback& fallback, const Tokenizer& tokenizer) {
  return std::all_of(std::begin(fallback.marks), std::end(fallback.marks),
                     [&](const char* mark) { return !mark || tokenizer.find(mark) != kNoToken; });
}

// "llama3" and "Llama-3" are the same name.
std::string plain_name(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (is_ascii_alnum(c)) out += char(c | 32);
  return out;
}

}  // namespace

void ChatTemplate::read_tokens(const Tokenizer& tokenizer) {
  tokens_ = jinja::Value::dict();
  const auto add = [&](const char* name, int32_t id) {
    if (id != kNoToken) tokens_.set(name, tokenizer.piece(id, true));
  };
  add("bos_token", tokenizer.bos());
  add("eos_token", tokenizer.eos());
  add("unk_token", tokenizer.unknown());
  add("pad_token", tokenizer.padding());
  bos_ = tokenizer.adds_bos() ? tokenizer.piece(tokenizer.bos(), true) : std::string();
}

Status ChatTemplate::fall_back(const Tokenizer& tokenizer) {
  const Fallback& row = *std::find_if(std::begin(kFallbacks), std::end(kFallbacks) - 1,
                                      [&](const Fallback& each) { return fits(each, tokenizer); });
  text_ = row.text;
  fallback_ = row.name;
  return template_.parse(text_);
}

Status ChatTemplate::open_text(std::string_view text, const Tokenizer& tokenizer) {
  read_tokens(tokenizer);
  text_ = text;
  fallback_ = nullptr;
  has_tool_template_ = false;
  if (text.find('{') != text.npos) return template_.parse(text_);
  for (const Fallback& row : kFallbacks)
    if (plain_name(row.name) == plain_name(text)) return template_.parse(text_ = row.text);
  return fail(Code::Argument,
              "no chat template: neither Jinja nor one of chatml, llama3, gemma, phi3, mistral");
}

Status ChatTemplate::open(const Gguf& gguf, const Tokenizer& tokenizer, const Log& log) {
  read_tokens(tokenizer);
  fallback_ = nullptr;
  const auto read = [&](const char* key, std::string* text, jinja::Template* out) {
    if (!gguf.find(key)) return false;
    std::string_view found;
    Status status = gguf.get_string(key, &found);
    if (status.ok()) status = out->parse(found);
    if (status.ok()) return *text = found, true;
    log(LogLevel::Warning, "%s: the chat template \"%s\" is not used: %s", gguf.name(), key, error_text());
    return false;
  };
  has_tool_template_ = read(kToolKey, &tool_text_, &tool_template_);
  if (read(kKey, &text_, &template_)) return {};
  GRETA_TRY(fall_back(tokenizer));
  log(gguf.find(kKey) ? LogLevel::Warning : LogLevel::Info, "%s: chats are written in the format of %s",
      gguf.name(), fallback_);
  return {};
}

Status ChatTemplate::render_context(const jinja::Value& given, int64_t now_s, const jinja::Limits& limits,
                                    std::string* out) const {
  jinja::Value context = jinja::Value::dict();
  for (const jinja::Value* from : {&tokens_, &given})
    for (const jinja::Value::Entry& entry : from->entries()) context.set(entry.key, entry.value);
  const bool with_tools = has_tool_template_ && context["tools"].size() > 0;
  return within((with_tools ? tool_template_ : template_).render(context, now_s, limits, out),
                "the chat template");
}

Status ChatTemplate::render(const ChatInput& input, const jinja::Limits& limits, std::string* out) const {
  jinja::Value context = jinja::Value::dict();
  if (!input.tools.is_undefined()) context.set("tools", input.tools);
  context.set("add_generation_prompt", input.add_generation_prompt);
  for (const jinja::Value::Entry& entry : input.arguments.entries()) context.set(entry.key, entry.value);
  context.set("messages", input.messages);
  std::string text;
  GRETA_TRY(render_context(context, input.now_s, limits, &text));
  const std::string_view rest(text);
  out->append(rest.substr(!bos_.empty() && rest.starts_with(bos_) ? bos_.size() : 0));
  return {};
}

}  // namespace greta
