// Gives a parser any bytes as the answer of a model of any family, at once and in pieces. The parts must be
// the same, and every call must have a name and an object of arguments.
//
// Input: a byte for the form, a byte of flags, a byte that says how the text is cut, then the text.
#include "text/chat/parser.h"
#include "text/unicode/unicode.h"

using namespace greta;

namespace {

constexpr std::string_view kForms[] = {
    "</think> <tool_call> <function=",
    "[TOOL_CALLS] [THINK]",
    "<|channel|><|message|>",
    "<|start_header_id|> <|python_tag|>",
    "</think> <｜tool▁calls▁begin｜> ｜DSML｜",
    "<response> </think> <|tool_call|>",
    "<|START_THINKING|> <|START_RESPONSE|> <|START_ACTION|>",
    "<|channel>thought <|tool_call>",
    "<|tool_call_start|> <tool_calls> <TOOLCALL>",
    "</think> List of tools: [",
    "<seed:think> <seed:tool_call> <minimax:tool_call> <|tool_calls_section_begin|>",
};

struct Parts {
  std::string all;
  char last = 0;
  bool add(char kind, std::string_view text) {
    if (text.empty()) __builtin_trap();
    if (kind != last) all += kind;
    last = kind;
    all += text;
    return true;
  }
  bool call(const ChatCall& call) {
    jinja::Value arguments;
    if (call.name.empty() || !parse_json(call.arguments, &arguments).ok() || !arguments.is_dict())
      __builtin_trap();
    all += "C" + call.name + call.id + call.arguments;
    last = 'C';
    return true;
  }
};

std::string parts_of(const ChatForm& form, const ToolList& tools, bool inside, std::string_view text,
                     size_t piece) {
  Parts parts;
  ChatParser parser(
      form, tools, inside ? "<think>" : "",
      {[&](std::string_view t) { return parts.add('T', t); },
       [&](std::string_view t) { return parts.add('R', t); }, [&](ChatCall c) { return parts.call(c); }});
  for (size_t at = 0; at < text.size(); at += piece) parser.push(text.substr(at, piece));
  parser.finish();
  return parts.all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  ToolList tools;
  if (data[1] & 1 &&
      !tools.parse(R"([{"name": "f", "parameters": {"properties": {"s": {"type": "string"}}}}])").ok())
    __builtin_trap();
  const std::string text = valid_utf8({reinterpret_cast<const char*>(data + 3), size - 3});
  const ChatForm form = chat_form(kForms[data[0] % std::size(kForms)]);
  const bool inside = data[1] & 2;
  const std::string whole = parts_of(form, tools, inside, text, std::max<size_t>(1, text.size()));
  if (parts_of(form, tools, inside, text, 1 + data[2] % 16) != whole) __builtin_trap();
  return 0;
}
