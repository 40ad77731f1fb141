// Chat templates: the three known families to the letter, everything else refused with a reason.
#include "engine/chat_format.h"

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "support/gguf_writer.h"

using namespace greta;

namespace {

const std::vector<ChatMessage> kTalk = {
    {"system", "Be brief."}, {"user", " Hi "}, {"assistant", "Hello"}, {"user", "Bye\n"}};

std::string render(std::string_view form, std::span<const ChatMessage> messages, bool prompt = true) {
  std::string out;
  const Status status = render_chat(form, messages, prompt, &out);
  INFO(error_text());
  REQUIRE(status.ok());
  return out;
}

std::string refusal(std::string_view form, std::span<const ChatMessage> messages = kTalk) {
  std::string out;
  clear_error_text();
  CHECK(render_chat(form, messages, true, &out).code == Code::Unsupported);
  CHECK(out.empty());
  return error_text();
}

// Written for these tests in the manner of the families.
const char* kTales =
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + "
    "'<|end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";
const char* kEager =
    "{% for message in messages %}{% if (message['role'] == 'user') %}{{'<|user|>' + '\n' + "
    "message['content'] + "
    "'<|end|>' + '\n' + '<|assistant|>' + '\n'}}{% else %}{{message['content'] + '<|end|>' + '\n'}}{% endif "
    "%}"
    "{% endfor %}";
const char* kChatMl =
    "{% for message in messages %}{{ \"<|im_start|>\" + message.role + \"\\n\" + message.content + "
    "\"<|im_end|>\\n\" }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif "
    "%}";
const char* kLlama3 =
    "{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + "
    "message['content'] | trim + '<|eot_id|>' }}{% endfor %}";

}  // namespace

TEST_CASE("Phi-3's form", "[engine][chat]") {
  CHECK(render(kTales, kTalk) ==
        "<|system|>\nBe brief.<|end|>\n<|user|>\n Hi "
        "<|end|>\n<|assistant|>\nHello<|end|>\n<|user|>\nBye\n<|end|>\n"
        "<|assistant|>\n");
  CHECK(render(kTales, {}, true) == "<|assistant|>\n");
  CHECK(render(kTales, {}, false).empty());
  // The first release asks for an answer after each user and knows no system message.
  CHECK(render(kEager, kTalk) ==
        "<|user|>\n Hi <|end|>\n<|assistant|>\nHello<|end|>\n<|user|>\nBye\n<|end|>\n<|assistant|>\n");
}

TEST_CASE("ChatML", "[engine][chat]") {
  CHECK(render(kChatMl, kTalk) ==
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
        "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye\n<|im_end|>\n<|im_start|>assistant\n");
  const std::string with_default =
      std::string(
          "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}"
          "{% endif %}") +
      kChatMl;
  const std::vector<ChatMessage> only_user = {{"user", "x"}};
  CHECK(render(with_default, only_user, false) ==
        "<|im_start|>system\nYou help.<|im_end|>\n<|im_start|>user\nx<|im_end|>\n");
  CHECK(render(with_default, kTalk).find("You help.") == std::string::npos);
}

TEST_CASE("Llama 3", "[engine][chat]") {
  CHECK(render(kLlama3, kTalk) ==
        "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n");
  const std::string dated = std::string(
                                "{{- \"Cutting Knowledge Date: December 2023\\n\" }}"
                                "{{- \"Today Date: \" + date_string + \"\\n\\n\" }}") +
                            kLlama3;
  const std::vector<ChatMessage> only_user = {{"user", "\xC2\xA0x "}};
  CHECK(render(dated, only_user, false) ==
        "<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\n"
        "Today Date: 26 Jul 2024\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nx<|eot_id|>");
  CHECK(render(dated, kTalk).find("2024\n\nBe brief.<|eot_id|>") != std::string::npos);
}

TEST_CASE("what is not known is refused with the reason", "[engine][chat]") {
  CHECK(refusal("").find("none of the forms") != std::string::npos);
  CHECK(refusal("{{ messages }}").find("it starts \"{{ messages }}\"") != std::string::npos);
  CHECK(refusal("<|im_start|>user<|im_sep|><|im_end|>").find("<|im_sep|>") != std::string::npos);
  CHECK(refusal(std::string(kChatMl) + "<think>").find("reasoning") != std::string::npos);
  CHECK(refusal(std::string(kChatMl) + "<tools>").find("tools") != std::string::npos);
  CHECK(refusal("<|start_header_id|><|eot_id|>").find("Llama 3") != std::string::npos);
  CHECK(refusal(std::string(kLlama3) + "function").find("Llama 3") != std::string::npos);
  CHECK(refusal("<|user|><|end|><|assistant|>").find("Phi-3") != std::string::npos);
  const std::vector<ChatMessage> tool = {{"tool", "x"}};
  std::string out;
  CHECK(render_chat(kChatMl, tool, true, &out).code == Code::Argument);
  CHECK(std::string(error_text()).find("role \"tool\"") != std::string::npos);
}

TEST_CASE("the template of a model", "[engine][chat]") {
  const auto with = [](const test::GgufWriter& writer, std::string* out) -> Status {
    const std::string file = writer.file();
    Source source;
    Gguf gguf;
    GRETA_TRY(source.open_memory(file.data(), file.size()));
    GRETA_TRY(gguf.open(std::move(source)));
    return render_chat(gguf, kTalk, true, out);
  };
  std::string out;
  REQUIRE(with(test::GgufWriter().value("tokenizer.chat_template", kTales), &out).ok());
  CHECK(out == render(kTales, kTalk));
  CHECK(with(test::GgufWriter(), &out).code == Code::Unsupported);
  CHECK(std::string(error_text()).find("has no chat template") != std::string::npos);
  CHECK(with(test::GgufWriter().value("tokenizer.chat_template", 1u), &out).code == Code::File);
}
