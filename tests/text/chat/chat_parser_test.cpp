// Answers of many families are taken apart, and cut at every place.
#include <catch2/catch_test_macros.hpp>
#include <random>

#include "text/chat/parts.h"

using namespace greta;
using namespace greta::test;

namespace {

constexpr const char* kTools = R"([
  {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties":
    {"city": {"type": "string"}, "days": {"type": "integer"}, "zip": {"type": "string"}}}}},
  {"name": "now", "parameters": {"type": "object", "properties": {}}}])";

struct Case {
  const char* name;
  const char* form;    // marks that the template has
  const char* prompt;  // the end of it
  const char* text;
  const char* parts;
};
constexpr Case kCases[] = {
    {"plain", "", "", " Hello\n world \n", "T( Hello\n world \n)"},
    {"plain text with marks of others", "", "", "<think>a</think> <tool_call>b",
     "T(<think>a</think> <tool_call>b)"},
    {"think", "<think></think>", "", "<think>\nhm\n</think>\n\nYes.\n", "R(hm)T(Yes.\n)"},
    {"think, blanks first", "<think></think>", "", "\n\n<think>hm</think>Yes.", "R(hm)T(Yes.)"},
    {"think begun by the prompt", "<think></think>", "<|assistant|><think>\n", "hm\nhm\n</think>\n\nYes.",
     "R(hm\nhm)T(Yes.)"},
    {"think closed by the prompt", "<think></think>", "<think>\n\n</think>\n\n", "Yes. </think>", "T(Yes.)"},
    {"think closed again", "<think></think>", "<think></think>", "\n</think>\n\nYes.", "T(Yes.)"},
    {"think closed on a line of its own", "<think></think>", "", "Yes.\n</think> \n\nMore.",
     "T(Yes. \n\nMore.)"},
    {"think closed, in quotes", "<think></think>", "", "It is `</think>`\nor \"</think>\nor </think> here.",
     "T(It is `</think>`\nor \"</think>\nor </think> here.)"},
    {"a call before the reasoning is closed", "</think> <tool_call>", "<think>",
     "hm\n<tool_call>{\"name\": \"now\"}</tool_call>\n", "R(hm)C(now {})"},
    {"two calls before the reasoning is closed", "</think> <tool_call>", "<think>",
     "hm\n<tool_call>{\"name\": \"now\"}</tool_call>\n<tool_call>{\"name\": \"now\"}</tool_call></think>\n",
     "R(hm)C(now {})C(now {})"},
    {"a call that is only thought of", "</think> <tool_call>", "<think>",
     "hm <tool_call>{\"name\": \"now\"}</tool_call> no.</think>Yes.",
     "R(hm <tool_call>{\"name\": \"now\"}</tool_call> no.)T(Yes.)"},
    {"a call that is thought of, and made", "</think> <tool_call>", "<think>",
     "<tool_call>{\"name\": \"now\"}</tool_call>\n</think>\n<tool_call>{\"name\": \"now\"}</tool_call>",
     "R(<tool_call>{\"name\": \"now\"}</tool_call>)C(now {})"},
    {"a mark that is thought of", "</think> <tool_call>", "<think>", "so <tool_call>.</think>Yes.",
     "R(so <tool_call>.)T(Yes.)"},
    {"mistral, a call before the reasoning is closed", "[THINK] [TOOL_CALLS]", "",
     "[THINK]a[TOOL_CALLS]now[ARGS]{}", "R(a)C(now {})"},
    {"a template that names no calls", "List of tools: [", "",
     "Look: <|tool_call_start|>[weather(city='Rome')]<|tool_call_end|>",
     "T(Look:)C(weather {\"city\": \"Rome\"})"},
    {"a template that names no calls, and a tool that is none", "List of tools: [", "",
     "<tool_call>{\"name\": \"no\"}</tool_call>", "T(<tool_call>{\"name\": \"no\"}</tool_call>)"},
    {"text before and after a call", "<tool_call>", "",
     "One. <tool_call>{\"name\": \"now\"}</tool_call> Two.", "T(One.)C(now {})T(\nTwo.)"},
    {"an object where calls have marks", "<tool_call>", "", "{\"name\": \"now\"}", "T({\"name\": \"now\"})"},
    {"solar", "<|tool_calls|>", "",
     "<|tool_calls|><|tool_call:begin|>a1<|tool_call:name|>now<|tool_call:args|>{}<|tool_call:end|><|calls|>",
     "C(now {})#a1"},
    {"command r plus", "Action:\\n```json", "",
     "Plan.\nAction:\n```json\n[\n{\"tool_name\": \"now\", \"parameters\": {}}\n]```", "T(Plan.)C(now {})"},
    {"firefunction", "functools[", "", " functools[{\"name\": \"now\", \"arguments\": {}}]", "C(now {})"},
    {"think never closed", "<think></think>", "<think>", "hm, and </thin", "R(hm, and </thin)"},
    {"think twice", "<think></think>", "", "<think>a</think>\n<think>b</think>c", "R(a\nb)T(c)"},
    {"think empty", "<think></think>", "", "<think>\n\n</think>\n\nYes.", "T(Yes.)"},
    {"think in the middle is text", "<think></think>", "", "Say <think>a</think>", "T(Say <think>a</think>)"},
    {"almost think", "<think></think>", "", "<thinker> </think", "T(<thinker> </think)"},
    {"mistral think", "[THINK]", "", "[THINK]a[b[/THINK]c", "R(a[b)T(c)"},
    {"seed think", "<seed:think>", "", "<seed:think>a</seed:think>b", "R(a)T(b)"},
    {"gemma 4", "<|channel>thought <|tool_call>", "",
     "<|channel>thought\nhm\n<channel|>Yes <|tool_call>call:weather{city:<|\"|>Rome "
     "{}<|\"|>,days:3,on:true,l:[1,2.5]}<tool_call|>",
     "R(hm)T(Yes)C(weather {\"city\": \"Rome {}\", \"days\": 3, \"on\": true, \"l\": [1, 2.5]})"},
    {"granite 3.3", "</think> <response> <|tool_call|>", "", "<think>a</think><response>b </response>",
     "R(a)T(b)"},
    {"ernie 4.5", "</think> <response> <tool_call>", "<think>\n",
     "a\n</think>\n\n<response>\nb\n</response>\n", "R(a)T(b)"},
    {"ernie 4.5 call", "</think> <response> <tool_call>", "<think>\n",
     "a\n</think>\n\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n", "R(a)C(now {})"},
    {"hunyuan", "</think> <answer> <tool_calls>", "", "<think>\na\n</think>\n<answer>\nb\n</answer>",
     "R(a)T(b)"},
    {"hunyuan call", "</think> <answer> <tool_calls>", "",
     "<think>\na\n</think>\n<answer>\nb\n</answer>\n<tool_calls>[{\"name\": \"weather\", \"arguments\": "
     "{\"city\": "
     "\"Rome\"}}]</tool_calls>",
     "R(a)T(b)C(weather {\"city\": \"Rome\"})"},
    {"exaone 4", "</think> <tool_call>", "<think>\n",
     "a\n</think>\n\n<tool_call>{\"name\": \"weather\", \"arguments\": {\"days\": 2}}</tool_call>",
     "R(a)C(weather {\"days\": 2})"},
    {"apertus", "<|inner_prefix|> <|tools_prefix|>", "",
     "<|inner_prefix|>a<|inner_suffix|>b<|tools_prefix|>[{\"weather\": {\"city\": \"Rome\"}}, {\"now\": "
     "{}}]<|tools_suffix|>",
     "R(a)T(b)C(weather {\"city\": \"Rome\"})C(now {})"},
    {"apertus, a tool that is none", "<|inner_prefix|> <|tools_prefix|>", "",
     "<|tools_prefix|>[{\"no\": {}}]<|tools_suffix|>", "T(<|tools_prefix|>[{\"no\": {}}]<|tools_suffix|>)"},
    {"apertus, two keys", "<|inner_prefix|> <|tools_prefix|>", "",
     "<|tools_prefix|>[{\"now\": {}, \"weather\": {}}]<|tools_suffix|>",
     "T(<|tools_prefix|>[{\"now\": {}, \"weather\": {}}]<|tools_suffix|>)"},
    {"granite 3.3 call", "<|tool_call|>", "", "<|tool_call|>[{\"name\": \"now\", \"arguments\": {}}]",
     "C(now {})"},
    {"command r7b", "<|START_THINKING|> <|START_RESPONSE|> <|START_ACTION|>", "",
     "<|START_THINKING|>a<|END_THINKING|><|START_ACTION|>[\n {\"tool_call_id\": \"0\", \"tool_name\": "
     "\"weather\", "
     "\"parameters\": {\"city\": \"Rome\"}}\n]<|END_ACTION|>",
     "R(a)C(weather {\"city\": \"Rome\"})#0"},
    {"command r7b answer", "<|START_RESPONSE|>", "", "<|START_RESPONSE|>Yes.<|END_RESPONSE|>", "T(Yes.)"},
    {"hermes", "<tool_call>", "",
     "One moment.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>\n",
     "T(One moment.)C(weather {\"city\": \"Rome\"})"},
    {"hermes, two", "<tool_call>", "",
     "<tool_call>{\"name\": "
     "\"now\"}</tool_call>\n<tool_call>\n{\"name\":\"weather\",\"arguments\":{\"days\":1e2}}\n</tool_call>",
     "C(now {})C(weather {\"days\": 100.0})"},
    {"hermes, text after", "<tool_call>", "", "<tool_call>{\"name\": \"now\"}</tool_call>\nDone.",
     "C(now {})T(Done.)"},
    {"hermes, never closed", "<tool_call>", "", "<tool_call>{\"name\": \"now\"}", "C(now {})"},
    {"hermes, broken off", "<tool_call>", "", "a <tool_call>{\"name\": \"no",
     "T(a <tool_call>{\"name\": \"no)"},
    {"hermes, no JSON", "<tool_call>", "", "a <tool_call>oh no</tool_call> b",
     "T(a <tool_call>oh no</tool_call> b)"},
    {"hermes, bad JSON", "<tool_call>", "", "<tool_call>{\"name\": \"now\",}</tool_call>",
     "T(<tool_call>{\"name\": \"now\",}</tool_call>)"},
    {"hermes, mark in an argument", "<tool_call>", "",
     "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"</tool_call>\"}}</tool_call>",
     "C(weather {\"city\": \"</tool_call>\"})"},
    {"hermes, one in another", "<tool_call>", "", "<tool_call> <tool_call>{\"name\": \"now\"}</tool_call>",
     "T(<tool_call>)C(now {})"},
    {"hermes, arguments as a text", "<tool_call>", "",
     "<tool_call>{\"name\": \"weather\", \"arguments\": \"{\\\"days\\\": 2}\"}</tool_call>",
     "C(weather {\"days\": 2})"},
    {"qwen 3", "</think> <tool_call>", "",
     "<think>\na\n</think>\n\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
     "R(a)C(now {})"},
    {"qwen 3.5", "</think> <tool_call> <function=", "<think>\n",
     "a\n</think>\n\n<tool_call>\n<function=weather>\n<parameter=city>\nRome\nItaly\n</"
     "parameter>\n<parameter=days>\n3\n"
     "</parameter>\n<parameter=zip>\n00100\n</parameter>\n<parameter=x>\n[1]\n</parameter>\n</function>\n</"
     "tool_call>",
     "R(a)C(weather {\"city\": \"Rome\\nItaly\", \"days\": 3, \"zip\": \"00100\", \"x\": [1]})"},
    {"qwen coder, bare function", "<tool_call> <function=", "", "<function=now>\n</function>", "C(now {})"},
    {"seed calls", "<seed:tool_call> <function=", "",
     "<seed:tool_call>\n<function=weather>\n<parameter=city>Rome</parameter>\n</function>\n</seed:tool_call>",
     "C(weather {\"city\": \"Rome\"})"},
    {"functionary", "<function=", "", "<function=weather>{\"city\": \"Rome\"}</function>",
     "C(weather {\"city\": \"Rome\"})"},
    {"minimax", "<minimax:tool_call>", "",
     "<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter "
     "name=\"city\">Rome</parameter>\n</invoke>\n<invoke name=\"now\">\n</invoke>\n</minimax:tool_call>",
     "C(weather {\"city\": \"Rome\"})C(now {})"},
    {"glm", "<tool_call> <arg_key>", "",
     "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>days</"
     "arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
     "C(weather {\"city\": \"Rome\", \"days\": 3})"},
    {"glm, no arguments", "<tool_call> <arg_key>", "", "<tool_call>now\n</tool_call>", "C(now {})"},
    {"nemotron", "<TOOLCALL>", "", "<TOOLCALL>[{\"name\": \"now\", \"arguments\": {}}]</TOOLCALL>",
     "C(now {})"},
    {"lfm2", "<|tool_call_start|>", "",
     "<|tool_call_start|>[weather(city=\"Rome\", days=2, l=[1, 'a'], o={'k': None}), "
     "now()]<|tool_call_end|>Ok",
     "C(weather {\"city\": \"Rome\", \"days\": 2, \"l\": [1, \"a\"], \"o\": {\"k\": null}})C(now {})T(Ok)"},
    {"llama 3", "<|start_header_id|> \"parameters\":", "",
     "{\"name\": \"weather\", \"parameters\": {\"city\": \"Rome\"}}", "C(weather {\"city\": \"Rome\"})"},
    {"llama 3, two", "<|start_header_id|> <|python_tag|>", "",
     "{\"name\": \"now\", \"parameters\": {}}; {\"name\": \"now\", \"parameters\": {}}\n",
     "C(now {})C(now {})"},
    {"llama 3, a tool that is none", "<|start_header_id|> <|python_tag|>", "", "{\"name\": \"Ann\"}",
     "T({\"name\": \"Ann\"})"},
    {"llama 3, other JSON", "<|start_header_id|> <|python_tag|>", "", "{\"a\": {\"name\": \"now\"}}",
     "T({\"a\": {\"name\": \"now\"}})"},
    {"llama 3, python tag", "<|start_header_id|> <|python_tag|>", "",
     "<|python_tag|>weather.call(city=\"Rome\")", "C(weather {\"city\": \"Rome\"})"},
    {"llama 4", "<|header_start|> \"parameters\": <|python_start|>", "",
     "{\"name\": \"weather\", \"parameters\": {\"city\": \"Rome\"}}", "C(weather {\"city\": \"Rome\"})"},
    {"llama 4, nothing between the marks", "<|header_start|> \"parameters\": <|python_start|>", "",
     "<|python_start|><|python_end|>{\"name\": \"now\", \"parameters\": {}}{\"name\": \"now\", "
     "\"parameters\": {}}",
     "C(now {})C(now {})"},
    {"llama 4, text between the marks", "<|header_start|> \"parameters\": <|python_start|>", "",
     "<|python_start|>Look.<|python_end|>{\"name\": \"now\", \"parameters\": {}}", "T(Look.)C(now {})"},
    {"llama 4, as Python", "<|header_start|> \"parameters\": <|python_start|>", "",
     "<|python_start|>[weather(city=\"Rome\", days=2), now()]<|python_end|>",
     "C(weather {\"city\": \"Rome\", \"days\": 2})C(now {})"},
    {"glm 4", "[gMASK]", "<|assistant|>", "weather\n{\"city\": \"Rome\", \"days\": 3}",
     "C(weather {\"city\": \"Rome\", \"days\": 3})"},
    {"glm 4, a line end first", "[gMASK]", "<|assistant|>", "\nnow\n{}", "C(now {})"},
    {"glm 4, a text", "[gMASK]", "<|assistant|>", "now and then\n{}", "T(now and then\n{})"},
    {"glm 4, a text that begins with a name", "[gMASK]", "<|assistant|>", "now\nit is.", "T(now\nit is.)"},
    {"glm 4, broken off", "[gMASK]", "<|assistant|>", "now", "T(now)"},
    {"muse glimmer", "<|start|> <|message|> <atem:invoke", "<|start|>assistant",
     " to=self<|message|>hm<|eom|><|start|>assistant to=user<|message|>Yes.", "R(hm)T(Yes.)"},
    {"muse glimmer, an answer alone", "<|start|> <|message|> <atem:invoke", "<|start|>assistant",
     "<|message|>Yes.", "T(Yes.)"},
    {"muse glimmer call", "<|start|> <|message|> <atem:invoke", "<|start|>assistant",
     " to=self<|message|>hm<|eom|><|start|>assistant "
     "to=weather<|message|><atem:function_calls>\n<atem:invoke "
     "name=\"weather\">\n<atem:parameter name=\"city\">Rome</atem:parameter>\n<atem:parameter "
     "name=\"days\">3</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
     "R(hm)C(weather {\"city\": \"Rome\", \"days\": 3})"},
    {"muse glimmer, no call", "<|start|> <|message|> <atem:invoke", "<|start|>assistant",
     " to=weather<|message|>Rome?<|eot|>", "T(Rome?)"},
    {"nemotron mini", "<toolcall>", "", "<toolcall> {\"name\": \"now\", \"arguments\": {}} </toolcall>",
     "C(now {})"},
    {"hunyuan, a name and a block", "</think> <answer> <tool_calls>", "",
     "<tool_calls>\n<tool_call>weather\n```json\n{\"city\": \"Rome\"}\n```</tool_call>\n</tool_calls>",
     "C(weather {\"city\": \"Rome\"})"},
    {"laguna", "</think> <tool_call> <arg_key>", "<think>",
     "a</think>\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>",
     "R(a)C(weather {\"city\": \"Rome\"})"},
    {"mistral nemo", "[TOOL_CALLS]", "",
     "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}, \"id\": \"abcdef123\"}, "
     "{\"name\": \"now\", \"arguments\": {}}]",
     "C(weather {\"city\": \"Rome\"})#abcdef123C(now {})"},
    {"mistral small", "[TOOL_CALLS]", "",
     "Look: [TOOL_CALLS]weather[CALL_ID]abcdef123[ARGS]{\"city\": \"Rome\"}[TOOL_CALLS]now[ARGS]{}",
     "T(Look:)C(weather {\"city\": \"Rome\"})#abcdef123C(now {})"},
    {"deepseek r1", "</think> <｜tool▁calls▁begin｜>", "<think>\n",
     "a</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": "
     "\"Rome\"}\n```<｜tool▁call▁end｜>\n"
     "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><"
     "｜tool▁calls▁end｜>",
     "R(a)C(weather {\"city\": \"Rome\"})C(now {})"},
    {"deepseek v3.1", "<｜tool▁calls▁begin｜>", "",
     "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": "
     "\"Rome\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "C(weather {\"city\": \"Rome\"})"},
    {"deepseek v3.2", "｜DSML｜", "",
     "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" "
     "string=\"true\">7</｜DSML｜parameter>\n"
     "<｜DSML｜parameter name=\"days\" "
     "string=\"false\">7</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
     "C(weather {\"city\": \"7\", \"days\": 7})"},
    {"kimi", "<|tool_calls_section_begin|>", "",
     "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{"
     "\"city\": \"Rome\"}<|tool_call_end|><|tool_calls_section_end|>",
     "C(weather {\"city\": \"Rome\"})#functions.weather:0"},
    {"gpt-oss", "<|channel|><|message|>", "<|start|>assistant",
     "<|channel|>analysis<|message|>hm\nhm<|end|><|start|>assistant<|channel|>final<|message|>Yes. ",
     "R(hm\nhm)T(Yes. )"},
    {"gpt-oss call", "<|channel|><|message|>", "<|start|>assistant",
     "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.weather "
     "<|constrain|>json<|message|>{\"city\": \"Rome\"}",
     "R(hm)C(weather {\"city\": \"Rome\"})"},
    {"gpt-oss, recipient first", "<|channel|><|message|>", "<|start|>assistant",
     " to=functions.now<|channel|>commentary json<|message|>{}<|call|>", "C(now {})"},
    {"gpt-oss, preamble", "<|channel|><|message|>", "",
     "<|channel|>commentary<|message|>First.<|end|><|start|>assistant<|channel|>final<|message|>Then.",
     "T(First.\nThen.)"},
    {"gpt-oss, a mark in a text", "<|channel|><|message|>", "",
     "<|channel|>final<|message|>The mark <|channel|> is one, <|channel|>analysis is the first. Bye",
     "T(The mark <|channel|> is one, <|channel|>analysis is the first. Bye)"},
    {"gpt-oss, a mark at the end of a text", "<|channel|><|message|>", "",
     "<|channel|>final<|message|>It is <|channel|>", "T(It is <|channel|>)"},
    {"gpt-oss, marks in an argument", "<|channel|><|message|>", "",
     "<|channel|>commentary to=functions.weather<|message|>{\"city\": \"<|call|> <|channel|>\"}<|call|>",
     "C(weather {\"city\": \"<|call|> <|channel|>\"})"},
    {"gpt-oss, thought twice", "<|channel|><|message|>", "",
     "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>",
     "R(a\nb)"},
    {"gpt-oss, no header", "<|channel|><|message|>", "", "Yes, to=you.", "T(Yes, to=you.)"},
    {"gpt-oss, bad call", "<|channel|><|message|>", "",
     "<|channel|>commentary to=functions.now<|message|>{oh}<|call|>", "T({oh})"},
    {"gpt-oss, broken off", "<|channel|><|message|>", "",
     "<|channel|>analysis<|message|>hm<|end|><|start|>assist", "R(hm)"},
};

// What answers are mixed of, and the marks of templates.
constexpr const char* kWords[] = {"<think>",
                                  "</think>",
                                  "<tool_call>",
                                  "</tool_call>",
                                  "{\"name\": \"now\"}",
                                  "\n",
                                  " ",
                                  "word",
                                  "<",
                                  "{",
                                  "}",
                                  "\"",
                                  "[TOOL_CALLS]",
                                  "[ARGS]",
                                  "now",
                                  "<|channel|>",
                                  "analysis",
                                  "<|message|>",
                                  "<|end|>",
                                  "<|start|>",
                                  "assistant",
                                  " to=functions.now",
                                  "<function=",
                                  "now>",
                                  "</function>",
                                  "<|python_tag|>",
                                  ";",
                                  "[",
                                  "]",
                                  "<response>",
                                  "</response>"};
constexpr const char* kForms[] = {"</think> <tool_call> <function=",
                                  "[TOOL_CALLS] </think>",
                                  "<|channel|><|message|>",
                                  "<|start_header_id|> <|python_tag|>",
                                  "<response> </think> <|tool_call|>",
                                  ""};

size_t count_words(std::string_view text) {
  size_t count = 0;
  for (size_t at = text.find("word"); at != text.npos; at = text.find("word", at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("an answer has the same parts wherever it is cut", "[chat]") {
  ToolList tools;
  REQUIRE(tools.parse(kTools).ok());
  for (const Case& c : kCases) {
    INFO(c.name);
    const ChatForm form = chat_form(c.form);
    const std::string_view text = c.text;
    std::vector<size_t> everywhere;
    CHECK(parts_of(form, tools, c.prompt, {text, {}}) == c.parts);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      everywhere.push_back(cut);
      if (const std::string parts = parts_of(form, tools, c.prompt, {text, {cut}}); parts != c.parts) {
        INFO("cut before " << text.substr(cut));
        CHECK(parts == c.parts);
      }
    }
    CHECK(parts_of(form, tools, c.prompt, {text, everywhere}) == c.parts);
  }
}

TEST_CASE("without tools the marks of calls are text", "[chat]") {
  ToolList none;
  for (const char* text : {"<tool_call>{\"name\": \"now\"}</tool_call>", "{\"name\": \"now\"}"})
    CHECK(parts_of(chat_form("<tool_call> <|start_header_id|> <|python_tag|>"), none, "", {text, {}}) ==
          "T(" + std::string(text) + ")");
}

// Marks, parts of marks and other text come in any order, for every form. Cuts change nothing, and no text is
// lost.
TEST_CASE("any mixture of marks has the same parts wherever it is cut", "[chat]") {
  ToolList tools;
  REQUIRE(tools.parse(kTools).ok());
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (uint32_t n = random() % 14; n > 0; --n) text += kWords[random() % std::size(kWords)];
    const ChatForm form = chat_form(kForms[random() % std::size(kForms)]);
    const std::string_view prompt = random() % 4 ? "" : "<think>";
    const std::string whole = parts_of(form, tools, prompt, {text, {}});
    std::vector<size_t> cuts, everywhere;
    for (size_t at = 1; at < text.size(); ++at) {
      everywhere.push_back(at);
      if (random() % 4 == 0) cuts.push_back(at);
    }
    INFO(text);
    REQUIRE(parts_of(form, tools, prompt, {text, cuts}) == whole);
    REQUIRE(parts_of(form, tools, prompt, {text, everywhere}) == whole);
    if (!form.channels && form.sections.empty()) REQUIRE(whole == (text.empty() ? "" : "T(" + text + ")"));
    // Words of letters that no mark has are still there, unless they were within a call.
    if (whole.find("C(") == whole.npos && !form.channels) REQUIRE(count_words(whole) == count_words(text));
  }
}

TEST_CASE("text behind what is no call comes before the answer ends", "[chat]") {
  ToolList tools;
  REQUIRE(tools.parse(kTools).ok());
  const auto before_end = [&](const char* form, const char* prompt, std::string_view text) {
    Parts parts;
    const ChatForm marks = chat_form(form);
    ChatParser parser(marks, tools, prompt, parts.sink());
    CHECK(parser.push(text));
    return parts.all;
  };
  CHECK(before_end("<tool_call>", "", "<tool_call></tool_call>Yes.") == "T(<tool_call></tool_call>Yes.)");
  CHECK(before_end("</think> <tool_call>", "<think>", "so <tool_call></tool_call>it is") ==
        "R(so <tool_call></tool_call>it is)");
  CHECK(before_end("</think> <tool_call>", "<think>", "so <tool_call>.</think>Yes.") ==
        "R(so <tool_call>.)T(Yes.)");
}

TEST_CASE("a call may be as long as the limit", "[chat]") {
  ToolList tools;
  REQUIRE(tools.parse(kTools).ok());
  std::string body = "{\"name\": \"now\"}";
  body.resize(kMaxCallBytes, ' ');
  const std::string whole = "<tool_call>" + body + "</tool_call>",
                    more = "<tool_call> " + body + "</tool_call>";
  CHECK(parts_of(chat_form("<tool_call>"), tools, "", {whole, {}}) == "C(now {})");
  CHECK(parts_of(chat_form("<tool_call>"), tools, "", {more, {}}) == "T(" + more + ")");
}

TEST_CASE("answers made to be slow or endless come out as text", "[chat]") {
  ToolList tools;
  REQUIRE(tools.parse(kTools).ok());
  const auto repeat = [](std::string_view text, size_t times) {
    std::string out;
    while (times--) out += text;
    return out;
  };
  const ChatForm hermes = chat_form("<tool_call> <|start_header_id|>");
  const std::string hostile[] = {
      "<tool_call>" + repeat("[", 100'000) + "</tool_call>", repeat("<tool_call>", 50'000),
      "<tool_call>{\"name\": \"now\", \"arguments\": " + repeat("{\"a\":", 100'000) + "</tool_call>",
      "<tool_call>{\"a\": \"" + repeat("</tool_call>", 10'000),
      "<tool_call>{" + std::string(kMaxCallBytes + 100, ' ')};
  for (const std::string& text : hostile) {
    std::string said;
    ChatParser parser(hermes, tools, "",
                      {[&](std::string_view t) { return said += t, true; },
                       [](std::string_view) { return true; }, [](ChatCall) { return true; }});
    for (size_t at = 0; at < text.size(); at += 1000)
      REQUIRE(parser.push(std::string_view(text).substr(at, 1000)));
    REQUIRE(parser.finish());
    CHECK(said == text);
  }
  // A message of a channel goes beyond the limit, in pieces and at once.
  const std::string endless =
      "<|channel|>commentary to=functions.now<|message|>" + std::string(kMaxCallBytes + 5000, 'x');
  const ChatForm channels = chat_form("<|channel|><|message|>");
  std::vector<size_t> cuts;
  for (size_t at = 4096; at < endless.size(); at += 4096) cuts.push_back(at);
  CHECK(parts_of(channels, tools, "", {endless, cuts}) == parts_of(channels, tools, "", {endless, {}}));
}

TEST_CASE("a sink that wants no more is given no more", "[chat]") {
  ToolList none;
  const ChatForm form = chat_form("</think>");
  int calls = 0;
  ChatParser parser(form, none, "",
                    {[&](std::string_view) { return ++calls < 2; }, [](std::string_view) { return true; },
                     [](ChatCall) { return true; }});
  CHECK(parser.push("a"));
  CHECK_FALSE(parser.push("b"));
  CHECK_FALSE(parser.push("c"));
  CHECK_FALSE(parser.finish());
  CHECK(calls == 2);
}

TEST_CASE("reasoning knows how it ends", "[chat]") {
  ToolList none;
  Parts parts;
  const ChatForm think = chat_form("</think>"), channels = chat_form("<|channel|><|message|>");
  for (const auto& [form, start] :
       {std::pair(&think, "<think>a"), std::pair(&channels, "<|channel|>analysis<|message|>a")}) {
    parts = {};
    ChatParser parser(*form, none, "", parts.sink());
    CHECK_FALSE(parser.reasoning());
    parser.push(start);
    CHECK(parser.reasoning());
    parser.push(parser.reasoning_end());
    CHECK_FALSE(parser.reasoning());
    parser.push("b");
    parser.finish();
    CHECK(parts.all == "R(a)T(b)");
  }
}

TEST_CASE("tools are read and looked up", "[chat]") {
  ToolList tools;
  CHECK(tools.empty());
  REQUIRE(tools.parse(kTools).ok());
  CHECK(tools.has("weather"));
  CHECK(tools.has("now"));
  CHECK_FALSE(tools.has("no"));
  CHECK(tools.read("weather", "days", "3").is_int());
  CHECK(tools.read("weather", "zip", "3").is_string());
  CHECK(tools.read("weather", "hours", "3").is_int());
  CHECK(tools.read("no", "days", "3").is_int());
  CHECK(tools.value().items()[1]["type"].as_string() == "function");
  for (const char* bad :
       {"", "{}", "[1]", "[{}]", "[{\"function\": {\"name\": \"a b\"}}]", "[{\"name\": \"a\"}"}) {
    INFO(bad);
    CHECK_FALSE(tools.parse(bad).ok());
  }
  clear_error_text();
  CHECK_FALSE(tools.parse("[{\"function\": {\"name\": \"a b\"}}]").ok());
  CHECK(std::string(error_text()) ==
        "tools: entry 0: the name \"a b\" must have at most 256 letters, digits and any of _ - . : /");
  CHECK(tools.has("now"));
  REQUIRE(tools.parse("[]").ok());
  CHECK(tools.empty());
}
