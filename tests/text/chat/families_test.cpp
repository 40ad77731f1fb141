// The families that one file each adds: what a conversation becomes, which tokens end an answer, and how
// reasoning and calls are read. The templates are written for these tests, in the form of those in published
// files; whole published ones are rendered where the test data has them (chat_template_test.cpp,
// call_round_trip_test.cpp).
#include <catch2/catch_test_macros.hpp>
#include <set>

#include "engine/model/shape.h"
#include "text/chat/opened.h"
#include "text/chat/parts.h"

using namespace greta;
using namespace greta::test;
using jinja::Value;

namespace {

constexpr const char* kTools = R"([{"type": "function", "function": {"name": "weather", "parameters":
  {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}])";

// What stands before and behind the text of a message.
struct Turn {
  std::string open, close;
};

struct Family {
  std::vector<const char*> archs;
  std::vector<std::string> controls;  // the first is BOS, the second EOS
  Turn system, user, assistant;
  std::string prompt;  // what an answer follows
  std::string marks;   // of reasoning and calls, which the published template names
  const char* rendered;
  std::vector<std::string> ends, goes_on;
  const char* answer;
  const char* parts;
};

std::string quoted(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 2) text.replace(at, 1, "\\n");
  return "'" + text + "'";
}

// A template of such turns. A text ends without white space, as in most published ones.
std::string template_of(const Family& family) {
  const auto turn = [](const char* role, const Turn& of) {
    return std::string("{% if m.role == '") + role + "' %}{{ " + quoted(of.open) + " ~ m.content | trim ~ " +
           quoted(of.close) + " }}{% endif %}";
  };
  return "{{ bos_token }}{% if tools %}{{ " + quoted(family.marks) + " }}{% endif %}{% for m in messages %}" +
         turn("system", family.system) + turn("user", family.user) + turn("assistant", family.assistant) +
         "{% endfor %}{% if add_generation_prompt %}{{ " + quoted(family.prompt) + " }}{% endif %}";
}

const Turn kChatSystem = {"<|im_start|>system\n", "<|im_end|>\n"},
           kChatUser = {"<|im_start|>user\n", "<|im_end|>\n"},
           kChatAssistant = {"<|im_start|>assistant\n", "<|im_end|>\n"};
const char* kChatTalk =
    "<|im_start|>system\nBe "
    "brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello<|im_end|>\n"
    "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n";
const char* kHermesCall =
    "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>";
const char* kThoughtCall =
    "<think>\na\n</think>\n\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
    "\"Rome\"}}\n</tool_call>";
const char* kCall = "C(weather {\"city\": \"Rome\"})";
const char* kThought = "R(a)C(weather {\"city\": \"Rome\"})";
const char* kKeyedCall =
    "<think>a</think>\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</"
    "arg_value>\n<arg_key>days</arg_key>\n"
    "<arg_value>3</arg_value>\n</tool_call>";
const char* kKeyedParts = "R(a)C(weather {\"city\": \"Rome\", \"days\": 3})";

const std::vector<Family> kChatMl = {
    {{"qwen2moe", "qwen3vl", "stablelm", "arcee"},
     {"<|endoftext|>", "<|im_end|>", "<|im_start|>"},
     kChatSystem,
     kChatUser,
     kChatAssistant,
     "<|im_start|>assistant\n",
     "<tool_call></tool_call>",
     kChatTalk,
     {"<|im_end|>", "<|endoftext|>"},
     {"<|im_start|>"},
     kHermesCall,
     kCall},
    {{"qwen3vlmoe", "afmoe"},
     {"<|endoftext|>", "<|im_end|>", "<|im_start|>"},
     kChatSystem,
     kChatUser,
     kChatAssistant,
     "<|im_start|>assistant\n",
     "<think></think><tool_call></tool_call>",
     kChatTalk,
     {"<|im_end|>", "<|endoftext|>"},
     {"<|im_start|>"},
     kThoughtCall,
     kThought},
};

const std::vector<Family> kDense = {
    {{"gemma"},
     {"<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"},
     {"<start_of_turn>user\n", "<end_of_turn>\n"},
     {"<start_of_turn>user\n", "<end_of_turn>\n"},
     {"<start_of_turn>model\n", "<end_of_turn>\n"},
     "<start_of_turn>model\n",
     "",
     "<start_of_turn>user\nBe "
     "brief.<end_of_turn>\n<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n"
     "Hello<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n",
     {"<end_of_turn>", "<eos>"},
     {"<start_of_turn>"},
     "Yes.",
     "T(Yes.)"},
    {{"gemma4"},
     {"<bos>", "<eos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>",
      "<|tool_response>"},
     {"<|turn>system\n", "<turn|>\n"},
     {"<|turn>user\n", "<turn|>\n"},
     {"<|turn>model\n", "<turn|>\n"},
     "<|turn>model\n",
     "<|channel>thought<|tool_call>",
     "<|turn>system\nBe "
     "brief.<turn|>\n<|turn>user\nHi<turn|>\n<|turn>model\nHello<turn|>\n<|turn>user\nBye<turn|>\n"
     "<|turn>model\n",
     {"<turn|>", "<eos>", "<|tool_response>"},
     {"<|turn>", "<channel|>", "<tool_call|>"},
     "<|channel>thought\na<channel|><|tool_call>call:weather{city:<|\"|>Rome<|\"|>}<tool_call|>",
     kThought},
    {{"olmo", "olmoe"},
     {"<|endoftext|>", "<|endoftext|>"},
     {"", "\n"},
     {"<|user|>\n", "\n"},
     {"<|assistant|>\n", "<|endoftext|>\n"},
     "<|assistant|>\n",
     "",
     "Be brief.\n<|user|>\nHi\n<|assistant|>\nHello<|endoftext|>\n<|user|>\nBye\n<|assistant|>\n",
     {"<|endoftext|>"},
     {},
     "Yes.",
     "T(Yes.)"},
    {{"starcoder2"},
     {"<|endoftext|>", "<|endoftext|>"},
     {"", "\n\n"},
     {"### Instruction\n", "\n\n"},
     {"### Response\n", "<|endoftext|>\n\n"},
     "### Response\n",
     "",
     "Be brief.\n\n### Instruction\nHi\n\n### Response\nHello<|endoftext|>\n\n### Instruction\nBye\n\n### "
     "Response\n",
     {"<|endoftext|>"},
     {},
     "Yes.",
     "T(Yes.)"},
    {{"glm4", "chatglm"},
     {"[gMASK]", "<|endoftext|>", "<sop>", "<|system|>", "<|user|>", "<|assistant|>"},
     {"<|system|>\n", ""},
     {"<|user|>\n", ""},
     {"<|assistant|>\n", ""},
     "<|assistant|>",
     "[gMASK]<|observation|>",
     "<|system|>\nBe brief.<|user|>\nHi<|assistant|>\nHello<|user|>\nBye<|assistant|>",
     {"<|endoftext|>"},
     {"<|assistant|>"},
     "weather\n{\"city\": \"Rome\"}",
     kCall},
    {{"seed_oss"},
     {"<seed:bos>", "<seed:eos>"},
     {"<seed:bos>system\n", "<seed:eos>"},
     {"<seed:bos>user\n", "<seed:eos>"},
     {"<seed:bos>assistant\n", "<seed:eos>"},
     "<seed:bos>assistant\n",
     "<seed:think></seed:think><seed:tool_call><function=",
     "<seed:bos>system\nBe "
     "brief.<seed:eos><seed:bos>user\nHi<seed:eos><seed:bos>assistant\nHello<seed:eos><seed:bos>user\n"
     "Bye<seed:eos><seed:bos>assistant\n",
     {"<seed:eos>"},
     {"<seed:bos>"},
     "<seed:think>a</seed:think><seed:tool_call>\n<function=weather>\n<parameter=city>Rome</parameter>\n</"
     "function>\n"
     "</seed:tool_call>",
     kThought},
    {{"exaone4"},
     {"[BOS]", "[|endofturn|]", "[|system|]", "[|user|]", "[|assistant|]"},
     {"[|system|]\n", "[|endofturn|]\n"},
     {"[|user|]\n", "[|endofturn|]\n"},
     {"[|assistant|]\n", "[|endofturn|]\n"},
     "[|assistant|]\n",
     "<think></think><tool_call></tool_call>",
     "[|system|]\nBe "
     "brief.[|endofturn|]\n[|user|]\nHi[|endofturn|]\n[|assistant|]\nHello[|endofturn|]\n[|user|]\nBye"
     "[|endofturn|]\n[|assistant|]\n",
     {"[|endofturn|]"},
     {"[|user|]"},
     kThoughtCall,
     kThought},
    {{"nemotron"},
     {"<s>", "</s>"},
     {"<extra_id_0>System\n", "\n\n"},
     {"<extra_id_1>User\n", "\n"},
     {"<extra_id_1>Assistant\n", "\n"},
     "<extra_id_1>Assistant\n",
     "<toolcall></toolcall>",
     "<extra_id_0>System\nBe "
     "brief.\n\n<extra_id_1>User\nHi\n<extra_id_1>Assistant\nHello\n<extra_id_1>User\nBye\n"
     "<extra_id_1>Assistant\n",
     {"</s>"},
     {},
     "<toolcall> {\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}} </toolcall>",
     kCall},
    {{"apertus"},
     {"<s>", "<|assistant_end|>", "<|tools_suffix|>", "<|inner_suffix|>"},
     {"<|system_start|>", "<|system_end|>"},
     {"<|user_start|>", "<|user_end|>"},
     {"<|assistant_start|>", "<|assistant_end|>"},
     "<|assistant_start|>",
     "<|inner_prefix|><|tools_prefix|>",
     "<|system_start|>Be "
     "brief.<|system_end|><|user_start|>Hi<|user_end|><|assistant_start|>Hello<|assistant_end|>"
     "<|user_start|>Bye<|user_end|><|assistant_start|>",
     {"<|assistant_end|>", "<|tools_suffix|>"},
     {"<|inner_suffix|>"},
     "<|inner_prefix|>a<|inner_suffix|><|tools_prefix|>[{\"weather\": {\"city\": \"Rome\"}}]",
     kThought},
};

const std::vector<Family> kMoreDense = {
    {{"mistral3"},
     {"<s>", "</s>", "[INST]", "[/INST]"},
     {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"},
     {"[INST]", "[/INST]"},
     {"", "</s>"},
     "",
     "[THINK][/THINK][TOOL_CALLS][ARGS]",
     "[SYSTEM_PROMPT]Be brief.[/SYSTEM_PROMPT][INST]Hi[/INST]Hello</s>[INST]Bye[/INST]",
     {"</s>"},
     {"[INST]"},
     "[THINK]a[/THINK][TOOL_CALLS]weather[ARGS]{\"city\": \"Rome\"}",
     kThought},
    {{"command-r", "cohere2"},
     {"<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>", "<|START_OF_TURN_TOKEN|>"},
     {"<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     {"<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     {"<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"},
     "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
     "<|START_THINKING|><|START_ACTION|><|START_RESPONSE|>",
     "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Be "
     "brief.<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>Hi"
     "<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>Hello<|END_OF_TURN_TOKEN|><|START_OF_"
     "TURN_TOKEN|>"
     "<|USER_TOKEN|>Bye<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
     {"<|END_OF_TURN_TOKEN|>"},
     {"<|START_OF_TURN_TOKEN|>"},
     "<|START_THINKING|>a<|END_THINKING|><|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": "
     "\"weather\", "
     "\"parameters\": {\"city\": \"Rome\"}}]<|END_ACTION|>",
     "R(a)C(weather {\"city\": \"Rome\"})#0"},
    {{"granite_swa"},
     {"<|end_of_text|>", "<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"},
     {"<|start_of_role|>system<|end_of_role|>", "<|end_of_text|>\n"},
     {"<|start_of_role|>user<|end_of_role|>", "<|end_of_text|>\n"},
     {"<|start_of_role|>assistant<|end_of_role|>", "<|end_of_text|>\n"},
     "<|start_of_role|>assistant<|end_of_role|>",
     "<tool_call></tool_call>",
     "<|start_of_role|>system<|end_of_role|>Be "
     "brief.<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>Hi"
     "<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>Hello<|end_of_text|>\n<|start_of_role|>"
     "user<|end_of_role|>"
     "Bye<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>",
     {"<|end_of_text|>"},
     {"<|start_of_role|>"},
     kHermesCall,
     kCall},
    {{"hunyuan-dense"},
     {"<｜hy_begin▁of▁sentence｜>", "<｜hy_place▁holder▁no▁2｜>", "<｜hy_User｜>", "<｜hy_Assistant｜>"},
     {"", "<｜hy_place▁holder▁no▁3｜>"},
     {"<｜hy_User｜>", ""},
     {"<｜hy_Assistant｜>", "<｜hy_place▁holder▁no▁2｜>"},
     "<｜hy_Assistant｜>",
     "<think></think><answer></answer><tool_calls><tool_call>",
     "Be "
     "brief.<｜hy_place▁holder▁no▁3｜><｜hy_User｜>Hi<｜hy_Assistant｜>Hello<｜hy_place▁holder▁no▁2｜><"
     "｜hy_User｜>"
     "Bye<｜hy_Assistant｜>",
     {"<｜hy_place▁holder▁no▁2｜>"},
     {"<｜hy_User｜>"},
     "<think>\na\n</think>\n<tool_calls>\n<tool_call>weather\n```json\n{\"city\": "
     "\"Rome\"}\n```</tool_call>\n</tool_calls>",
     kThought},
    {{"ernie4_5", "ernie4_5-moe"},
     {"<|begin_of_sentence|>", "</s>", "<|end_of_sentence|>"},
     {"", "\n"},
     {"User: ", "\n"},
     {"Assistant: ", "<|end_of_sentence|>"},
     "Assistant: ",
     "<think></think><response></response><tool_call></tool_call>",
     "Be brief.\nUser: Hi\nAssistant: Hello<|end_of_sentence|>User: Bye\nAssistant: ",
     {"</s>", "<|end_of_sentence|>"},
     {},
     kThoughtCall,
     kThought},
    {{"muse-glimmer"},
     {"<|begin_of_text|>", "<|end_of_text|>", "<|start|>", "<|message|>", "<|eom|>", "<|eot|>"},
     {"<|start|>system<|message|>", "<|eot|>"},
     {"<|start|>user<|message|>", "<|eot|>"},
     {"<|start|>assistant to=user<|message|>", "<|eot|>"},
     "<|start|>assistant",
     "<|start|><|message|><atem:function_calls><atem:invoke name=\"N\">",
     "<|start|>system<|message|>Be brief.<|eot|><|start|>user<|message|>Hi<|eot|><|start|>assistant "
     "to=user<|message|>Hello"
     "<|eot|><|start|>user<|message|>Bye<|eot|><|start|>assistant",
     {"<|eot|>", "<|end_of_text|>"},
     {"<|eom|>", "<|message|>"},
     " to=self<|message|>a<|eom|><|start|>assistant "
     "to=weather<|message|><atem:function_calls>\n<atem:invoke name=\"weather\">\n"
     "<atem:parameter name=\"city\">Rome</atem:parameter>\n</atem:invoke>\n</atem:function_calls>",
     kThought},
};

const std::vector<Family> kExperts = {
    {{"llama4"},
     {"<|begin_of_text|>", "<|eot|>", "<|eom|>", "<|header_start|>", "<|header_end|>", "<|end_of_text|>"},
     {"<|header_start|>system<|header_end|>\n\n", "<|eot|>"},
     {"<|header_start|>user<|header_end|>\n\n", "<|eot|>"},
     {"<|header_start|>assistant<|header_end|>\n\n", "<|eot|>"},
     "<|header_start|>assistant<|header_end|>\n\n",
     "<|python_start|>{\"name\": \"N\", \"parameters\": {}}",
     "<|header_start|>system<|header_end|>\n\nBe "
     "brief.<|eot|><|header_start|>user<|header_end|>\n\nHi<|eot|>"
     "<|header_start|>assistant<|header_end|>\n\nHello<|eot|><|header_start|>user<|header_end|>\n\nBye<|"
     "eot|>"
     "<|header_start|>assistant<|header_end|>\n\n",
     {"<|eot|>", "<|eom|>", "<|end_of_text|>"},
     {"<|header_end|>"},
     "<|python_start|><|python_end|>{\"name\": \"weather\", \"parameters\": {\"city\": \"Rome\"}}",
     kCall},
    {{"glm4moe"},
     {"[gMASK]", "<|endoftext|>", "<sop>", "<|user|>", "<|assistant|>"},
     {"<|system|>\n", ""},
     {"<|user|>\n", ""},
     {"<|assistant|>\n", ""},
     "<|assistant|>",
     "[gMASK]<think></think><tool_call><arg_key>",
     "<|system|>\nBe brief.<|user|>\nHi<|assistant|>\nHello<|user|>\nBye<|assistant|>",
     {"<|endoftext|>"},
     {"<|assistant|>"},
     kKeyedCall,
     kKeyedParts},
    {{"glm4moe"},
     {"<s>", "<|endoftext|>", "<|begin|>", "<|end|>", "<|flush|>", "<|calls|>"},  // Solar Open
     {"<|begin|>system<|content|>", "<|end|>\n"},
     {"<|begin|>user<|content|>", "<|end|>\n"},
     {"<|begin|>assistant<|content|>", "<|end|>\n"},
     "<|begin|>assistant",
     "<|tool_calls|>",
     "<|begin|>system<|content|>Be "
     "brief.<|end|>\n<|begin|>user<|content|>Hi<|end|>\n<|begin|>assistant<|content|>Hello"
     "<|end|>\n<|begin|>user<|content|>Bye<|end|>\n<|begin|>assistant",
     {"<|flush|>", "<|calls|>", "<|endoftext|>"},
     {"<|end|>"},
     "<|tool_calls|><|tool_call:begin|>a1<|tool_call:name|>weather<|tool_call:args|>{\"city\": "
     "\"Rome\"}<|tool_call:end|>",
     "C(weather {\"city\": \"Rome\"})#a1"},
    {{"laguna"},
     {"<s>", "<eos>", "</assistant>"},
     {"<system>\n", "\n</system>\n"},
     {"<user>\n", "\n</user>\n"},
     {"<assistant>\n", "\n</assistant>\n"},
     "<assistant>\n",
     "<think></think><tool_call><arg_key>",
     "<system>\nBe "
     "brief.\n</system>\n<user>\nHi\n</user>\n<assistant>\nHello\n</assistant>\n<user>\nBye\n</user>\n"
     "<assistant>\n",
     {"<eos>", "</assistant>"},
     {},
     kKeyedCall,
     kKeyedParts},
    {{"dots1"},
     {"<|endoftext|>", "<|endoftext|>", "<|endofresponse|>", "<|endofuserprompt|>"},
     {"<|system|>", "<|endofsystem|>"},
     {"<|userprompt|>", "<|endofuserprompt|>"},
     {"<|response|>", "<|endofresponse|>"},
     "<|response|>",
     "",
     "<|system|>Be "
     "brief.<|endofsystem|><|userprompt|>Hi<|endofuserprompt|><|response|>Hello<|endofresponse|>"
     "<|userprompt|>Bye<|endofuserprompt|><|response|>",
     {"<|endofresponse|>", "<|endoftext|>"},
     {"<|endofuserprompt|>"},
     "Yes.",
     "T(Yes.)"},
    {{"minimax-m2"},
     {"]~!b[", "[e~[", "]~b]"},
     {"]~b]system\n", "[e~[\n"},
     {"]~b]user\n", "[e~[\n"},
     {"]~b]ai\n", "[e~[\n"},
     "]~b]ai\n",
     "<think></think><minimax:tool_call><invoke name=",
     "]~b]system\nBe brief.[e~[\n]~b]user\nHi[e~[\n]~b]ai\nHello[e~[\n]~b]user\nBye[e~[\n]~b]ai\n",
     {"[e~["},
     {"]~b]"},
     "<think>\na\n</think>\n\n<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter "
     "name=\"city\">Rome</parameter>\n"
     "</invoke>\n</minimax:tool_call>",
     kThought},
    {{"hunyuan-moe"},
     {"<|startoftext|>", "<|eos|>", "<|extra_0|>", "<|extra_4|>"},
     {"", "<|extra_4|>"},
     {"", "<|extra_0|>"},
     {"", "<|eos|>"},
     "",
     "<think></think><answer></answer><tool_calls>",
     "Be brief.<|extra_4|>Hi<|extra_0|>Hello<|eos|>Bye<|extra_0|>",
     {"<|eos|>"},
     {"<|extra_0|>"},
     "<think>\na\n</think>\n<answer>\nb\n</answer>\n<tool_calls>[{\"name\": \"weather\", \"arguments\": "
     "{\"city\": "
     "\"Rome\"}}]</tool_calls>",
     "R(a)T(b)C(weather {\"city\": \"Rome\"})"},
};

std::vector<Family> all_families() {
  std::vector<Family> all;
  for (const auto& some : {kChatMl, kDense, kMoreDense, kExperts})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace

TEST_CASE("families: a conversation is written, an answer ends, and its parts are read", "[engine][chat]") {
  ToolList tools;
  REQUIRE(tools.parse(kTools).ok());
  for (const Family& family : all_families()) {
    INFO(family.archs[0]);
    GgufWriter writer = vocabulary(family.controls);
    writer.value("tokenizer.chat_template", template_of(family).c_str());
    // Laguna's converter names the end of a turn.
    if (family.controls.back() == "</assistant>") writer.value("tokenizer.ggml.eot_token_id", 2u);
    const Opened with(writer);
    CHECK(with.log.empty());
    CHECK(with.render() == family.rendered);
    for (const std::string& end : family.ends) {
      INFO(end);
      CHECK(with.tokenizer.is_end(with.tokenizer.find(end)));
    }
    for (const std::string& other : family.goes_on) {
      INFO(other);
      CHECK_FALSE(with.tokenizer.is_end(with.tokenizer.find(other)));
    }
    const ChatForm form = chat_form(with.chat.text());
    const std::string_view answer = family.answer;
    CHECK(parts_of(form, tools, family.prompt, {answer, {}}) == family.parts);
    std::vector<size_t> everywhere;
    for (size_t cut = 1; cut < answer.size(); ++cut) everywhere.push_back(cut);
    CHECK(parts_of(form, tools, family.prompt, {answer, everywhere}) == family.parts);
  }
}

TEST_CASE("families: each architecture with a chat has a row, and each row one that runs", "[engine][chat]") {
  std::set<std::string> rows;
  for (const Family& family : all_families())
    for (const char* name : family.archs) {
      const Arch* arch = nullptr;
      INFO(name);
      CHECK(find_arch(name, &arch).ok());
      rows.insert(name);
    }
  // Of gpt2, phi2, gptneox and bloom no template was published: a plain format stands in.
  CHECK(rows.size() == 31);
}
