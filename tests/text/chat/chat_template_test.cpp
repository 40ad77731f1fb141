// Chat templates of files, and the formats that stand in for them.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <iterator>

#include "support/test_data.h"
#include "text/chat/opened.h"

using namespace greta;
using namespace greta::test;
using jinja::Value;

namespace {

const std::vector<std::string> kPlain = {"<s>", "</s>"};

// A template like Phi-3's, written for these tests.
const char* kTales =
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + "
    "'<|end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";
const char* kTalesTalk =
    "<|system|>\nBe brief.<|end|>\n<|user|>\n Hi "
    "<|end|>\n<|assistant|>\nHello<|end|>\n<|user|>\nBye\n<|end|>\n"
    "<|assistant|>\n";

}  // namespace

TEST_CASE("a file's own chat template", "[engine][chat]") {
  const Opened with(vocabulary(kPlain).value("tokenizer.chat_template", kTales));
  CHECK(with.log.empty());
  CHECK(!with.chat.is_fallback());
  CHECK(with.chat.text() == kTales);
  CHECK(with.render() == kTalesTalk);  // the BOS token is left out, since encode() adds it
  ChatInput none;
  none.messages = Value::list();
  CHECK(with.render(none) == "<|assistant|>\n");
  none.add_generation_prompt = false;
  CHECK(with.render(none).empty());

  const Opened bare(vocabulary(kPlain, false).value("tokenizer.chat_template", kTales));
  CHECK(bare.render() == std::string("<s>") + kTalesTalk);
}

TEST_CASE("what a chat template is given", "[engine][chat]") {
  const char* text =
      "{{ [bos_token, eos_token, tools is defined, style, add_generation_prompt, messages | length] }} "
      "{{ strftime_now('%d %b %Y') }}";
  const Opened with(vocabulary(kPlain).value("tokenizer.chat_template", text));
  ChatInput input;
  input.messages = talk();
  input.now_s = 1721952000;
  CHECK(with.render(input) == "['<s>', '</s>', False, Undefined, True, 4] 26 Jul 2024");
  input.arguments = Value::dict();
  input.arguments.set("style", "dry");
  input.arguments.set("add_generation_prompt", false);
  input.arguments.set("messages", "mine");
  input.tools = Value::list({Value("t")});
  CHECK(with.render(input) == "['<s>', '</s>', True, 'dry', False, 4] 26 Jul 2024");
}

TEST_CASE("chats with tools take the template for tools", "[engine][chat]") {
  const Opened with(vocabulary(kPlain)
                        .value("tokenizer.chat_template", "plain")
                        .value("tokenizer.chat_template.tool_use", "{{ tools[0] }}"));
  ChatInput input;
  input.messages = talk();
  CHECK(with.render(input) == "plain");
  input.tools = Value::list();
  CHECK(with.render(input) == "plain");
  input.tools.push("hammer");
  CHECK(with.render(input) == "hammer");
}

TEST_CASE("what a chat template refuses comes back in words", "[engine][chat]") {
  const Opened with(
      vocabulary(kPlain).value("tokenizer.chat_template", "x\n{{ raise_exception('no ' ~ 'way') }}"));
  ChatInput input;
  input.messages = talk();
  std::string out = "kept";
  CHECK(with.chat.render(input, {}, &out).code == Code::Argument);
  CHECK(std::string(error_text()) == "the chat template: line 2: no way");
  CHECK(out == "kept");
}

TEST_CASE("without a chat template a plain format stands in", "[engine][chat]") {
  struct Row {
    std::vector<std::string> controls;
    const char* name;
    const char* text;
  };
  const Row rows[] = {
      {kPlain, "ChatML",
       "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n"
       "Hello<|im_end|>\n<|im_start|>user\nBye\n<|im_end|>\n<|im_start|>assistant\n"},
      {{"<s>", "</s>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
       "Llama 3",
       "<|start_header_id|>system<|end_header_id|>\n\nBe "
       "brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n"
       "Hi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello<|eot_id|><|start_header_id|>user"
       "<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
      {{"<s>", "</s>", "<start_of_turn>", "<end_of_turn>"},
       "Gemma",
       "<start_of_turn>user\nBe "
       "brief.<end_of_turn>\n<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n"
       "Hello<end_of_turn>\n<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n"},
      {{"<s>", "</s>", "<|end|>", "<|user|>", "<|assistant|>"}, "Phi-3", kTalesTalk},
      {{"<s>", "</s>", "[INST]", "[/INST]"},
       "Mistral",
       "[INST] Be brief. [/INST][INST]  Hi  [/INST] Hello</s>[INST] Bye\n [/INST]"},
  };
  for (const Row& row : rows) {
    const Opened with(vocabulary(row.controls));
    CHECK(with.chat.is_fallback());
    CHECK(std::string(with.chat.fallback()) == row.name);
    CHECK(with.render() == row.text);
    CHECK(with.log.find(std::string("format of ") + row.name) != std::string::npos);
  }
}

TEST_CASE("a broken chat template is a warning, and a plain format stands in", "[engine][chat]") {
  const auto warning = std::to_string(uint32_t(LogLevel::Warning)) + " ";
  const Opened broken(vocabulary(kPlain).value("tokenizer.chat_template", "a\nb {% if %}"));
  CHECK(broken.chat.is_fallback());
  CHECK(broken.log.rfind(warning, 0) == 0);
  CHECK(broken.log.find("line 2") != std::string::npos);
  CHECK(broken.render().find("<|im_start|>user\n Hi <|im_end|>") != std::string::npos);

  const Opened number(vocabulary(kPlain).value("tokenizer.chat_template", 1u));
  CHECK(number.chat.is_fallback());
  CHECK(number.log.rfind(warning, 0) == 0);

  Opened given(vocabulary(kPlain));
  CHECK(given.chat.open_text("{% if %}", given.tokenizer).code == Code::Argument);
  REQUIRE(given.chat.open_text("{{ messages[0].role }}", given.tokenizer).ok());
  CHECK(!given.chat.is_fallback());
  CHECK(given.render() == "system");
}

TEST_CASE("real templates render as Python's jinja2 renders them", "[engine][chat]") {
  const auto data = test::test_data();
  const auto read = [](const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    REQUIRE(file.good());
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  Value goldens;
  REQUIRE(jinja::parse_json(read(data / "golden/chat/renderings.json"), &goldens).ok());
  size_t rendered = 0, refused = 0;
  for (const Value::Entry& file : goldens["renderings"].entries()) {
    jinja::Template form;
    REQUIRE(form.parse(read(data / "templates" / file.key.as_string())).ok());
    for (const Value::Entry& golden : file.value.entries()) {
      const Value& context = goldens["contexts"][golden.key.as_string()];
      std::string out;
      clear_error_text();
      const Status status = form.render(context, 1721952000, {}, &out);  // 26 July 2024
      INFO(file.key.as_string() << " " << golden.key.as_string() << ": " << error_text());
      const Value* expected = golden.value.find("ok");
      CHECK(status.ok() == (expected != nullptr));
      if (expected && status.ok()) CHECK(out == expected->as_string());
      ++(expected ? rendered : refused);
    }
  }
  CHECK(rendered > 300);
  CHECK(refused > 20);
}
