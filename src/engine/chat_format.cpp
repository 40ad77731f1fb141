// Three families: ChatML, Llama 3 and Phi-3. A family is told by its marks, a variant by a phrase
// that only its templates have; both are looked for in a copy of the template without white space.
#include "engine/chat_format.h"

#include "engine/unicode.h"

namespace greta {
namespace {

struct Template {
  std::string_view text;
  std::string squeezed;  // no blanks, one kind of quote, \n as a line break, message.x as message['x']
  bool has(std::string_view phrase) const { return squeezed.find(phrase) != squeezed.npos; }
};

void replace_all(std::string* text, std::string_view from, std::string_view to) {
  for (size_t at = text->find(from); at != text->npos; at = text->find(from, at + to.size()))
    text->replace(at, from.size(), to);
}

Template read_template(std::string_view text) {
  Template out{text, {}};
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == ' ' || c == '\t' || c == '\r') continue;
    if (c == '\\' && at + 1 < text.size() && text[at + 1] == 'n') {
      out.squeezed += '\n';
      ++at;
    } else {
      out.squeezed += c == '"' ? '\'' : c;
    }
  }
  replace_all(&out.squeezed, "message.role", "message['role']");
  replace_all(&out.squeezed, "message.content", "message['content']");
  replace_all(&out.squeezed, "'+'", "");
  return out;
}

// As Jinja's trim: white space of all kinds, from both ends.
std::string_view trim(std::string_view text) {
  while (!text.empty()) {
    const CodePoint first = decode_utf8(text, 0);
    if (!is_space(first.code)) break;
    text.remove_prefix(first.bytes);
  }
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode_utf8(text, at);
    if (!is_space(point.code)) end = at + point.bytes;
    at += point.bytes;
  }
  return text.substr(0, end);
}

void add(std::string* out, std::initializer_list<std::string_view> pieces) {
  for (const std::string_view piece : pieces) out->append(piece);
}

Status more_than(const char* family, const char* what) {
  return fail(Code::Unsupported,
              "the model's chat template is of the %s family but %s, which is not supported yet", family,
              what);
}

// ---- ChatML -----------------------------------------------------------------------------------

// The system message that some templates supply themselves: the text between the marks when they
// stand in one literal.
std::string_view default_system(std::string_view text) {
  constexpr std::string_view kStart = "<|im_start|>system", kEnd = "<|im_end|>";
  for (size_t at = text.find(kStart); at != text.npos; at = text.find(kStart, at + 1)) {
    const std::string_view rest = text.substr(at + kStart.size());
    const size_t start = rest.substr(0, 2) == "\\n" ? 2 : rest.substr(0, 1) == "\n" ? 1 : 0;
    const size_t end = rest.find(kEnd);
    if (start == 0 || end == rest.npos) continue;
    const std::string_view between = rest.substr(start, end - start);
    if (between.find_first_of("'\"{}") == between.npos) return between;
  }
  return {};
}

Status render_chatml(const Template& form, std::span<const ChatMessage> messages, bool prompt,
                     std::string* out) {
  if (form.has("<|im_sep|>")) return more_than("ChatML", "separates roles with <|im_sep|>");
  if (form.has("<tools>") && !form.has("{%-iftools") && !form.has("{%iftools"))
    return more_than("ChatML", "always offers tools");
  if (form.has("<think>")) {
    // Qwen 3 edits reasoning out of earlier answers; without any, and before a new answer, it is plain.
    const bool qwen3 =
        form.has("enable_thinkingisdefinedandenable_thinkingisfalse") && !form.has("'<think>\n'}}");
    bool simple = prompt && !messages.empty() && messages.back().role == "user";
    for (const ChatMessage& message : messages)
      simple &= message.content.find("</think>") == message.content.npos;
    if (!qwen3 || !simple) return more_than("ChatML", "treats reasoning in its own way");
  }
  const std::string_view system = default_system(form.text);
  if (!system.empty() && (messages.empty() || messages[0].role != "system"))
    add(out, {"<|im_start|>system\n", system, "<|im_end|>\n"});
  for (const ChatMessage& message : messages)
    add(out, {"<|im_start|>", message.role, "\n", message.content, "<|im_end|>\n"});
  if (prompt) add(out, {"<|im_start|>assistant\n"});
  return {};
}

// ---- Llama 3 ----------------------------------------------------------------------------------

Status render_llama3(const Template& form, std::span<const ChatMessage> messages, bool prompt,
                     std::string* out) {
  const auto turn = [&](std::string_view role, std::string_view before, std::string_view content) {
    add(out, {"<|start_header_id|>", role, "<|end_header_id|>\n\n", before, trim(content), "<|eot_id|>"});
  };
  if (!form.has("'<|start_header_id|>'+message['role']+'<|end_header_id|>\n\n'+message['content']|trim"))
    return more_than("Llama 3", "writes its messages in another way");
  const bool dated = form.has("CuttingKnowledgeDate:December2023\n'") && form.has("'TodayDate:'+date_string");
  if (!dated && (form.has("CuttingKnowledgeDate") || form.has("function")))
    return more_than("Llama 3", "has a system message of its own");
  if (dated) {
    // Llama 3.1 to 3.3 always open with a system message, dated.
    const bool given = !messages.empty() && messages[0].role == "system";
    turn("system", "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n",
         given ? messages[0].content : std::string_view());
    if (given) messages = messages.subspan(1);
  }
  for (const ChatMessage& message : messages) turn(message.role, "", message.content);
  if (prompt) add(out, {"<|start_header_id|>assistant<|end_header_id|>\n\n"});
  return {};
}

// ---- Phi-3 ------------------------------------------------------------------------------------

Status render_phi3(const Template& form, std::span<const ChatMessage> messages, bool prompt,
                   std::string* out) {
  const bool any_role = form.has("'<|'+message['role']+'|>\n'+message['content']+'<|end|>\n'");
  const bool eager = form.has("<|end|>\n<|assistant|>\n'");  // the first release: asks after each user
  if (!any_role && !form.has("<|user|>\n'+message['content']+'<|end|>\n"))
    return more_than("Phi-3", "writes its messages in another way");
  for (const ChatMessage& message : messages) {
    if (!any_role && message.role == "system" && !form.has("<|system|>\n'")) continue;
    if (!eager || message.role != "assistant") add(out, {"<|", message.role, "|>\n"});
    add(out, {message.content, "<|end|>\n"});
    if (eager && message.role == "user") add(out, {"<|assistant|>\n"});
  }
  if (prompt && !eager) add(out, {"<|assistant|>\n"});
  if (!prompt && form.has("{%else%}{{eos_token}}{%endif%}")) add(out, {"<|endoftext|>"});
  return {};
}

}  // namespace

Status render_chat(std::string_view chat_template, std::span<const ChatMessage> messages,
                   bool add_generation_prompt, std::string* out) {
  for (const ChatMessage& message : messages)
    if (message.role != "system" && message.role != "user" && message.role != "assistant")
      return fail(Code::Argument, "a message of role %s, expected \"system\", \"user\" or \"assistant\"",
                  Quoted(message.role).c_str());
  const Template form = read_template(chat_template);
  if (form.has("<|start_header_id|>") && form.has("<|eot_id|>"))
    return render_llama3(form, messages, add_generation_prompt, out);
  if (form.has("<|im_start|>") && form.has("<|im_end|>"))
    return render_chatml(form, messages, add_generation_prompt, out);
  if (form.has("<|end|>") && (form.has("<|user|>") || form.has("'<|'+message['role']")) &&
      form.has("<|assistant|>"))
    return render_phi3(form, messages, add_generation_prompt, out);
  return fail(
      Code::Unsupported,
      "the model's chat template is none of the forms that are known (ChatML, Llama 3, Phi-3); it starts %s",
      Quoted(chat_template).c_str());
}

Status render_chat(const Gguf& gguf, std::span<const ChatMessage> messages, bool add_generation_prompt,
                   std::string* out) {
  if (!gguf.find("tokenizer.chat_template"))
    return fail(Code::Unsupported, "%s: the model has no chat template (key \"tokenizer.chat_template\")",
                gguf.name());
  std::string_view text;
  GRETA_TRY(gguf.get_string("tokenizer.chat_template", &text));
  return within(render_chat(text, messages, add_generation_prompt, out), "%s", gguf.name());
}

}  // namespace greta
