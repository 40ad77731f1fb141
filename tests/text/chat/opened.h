// A vocabulary and a chat template as a file has them, and a conversation to render.
#pragma once
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "support/gguf_writer.h"
#include "text/chat/template.h"

namespace greta::test {

inline jinja::Value talk() {
  jinja::Value messages;
  REQUIRE(
      jinja::parse_json(R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hi "},
                                {"role": "assistant", "content": "Hello"}, {"role": "user",
    "content": "Bye\n"}])",
                        &messages)
          .ok());
  return messages;
}

// A vocabulary of bytes and these control tokens, the first of which is BOS.
inline GgufWriter vocabulary(const std::vector<std::string>& controls, bool adds_bos = true) {
  std::vector<std::string> tokens = controls;
  std::vector<int32_t> kinds(controls.size(), 3);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    snprintf(text, sizeof text, "<0x%02X>", byte);
    tokens.push_back(text);
    kinds.push_back(6);
  }
  GgufWriter writer;
  writer.value("tokenizer.ggml.model", "llama");
  writer.value("tokenizer.ggml.tokens", tokens);
  writer.value("tokenizer.ggml.scores", std::vector<float>(tokens.size(), 0.0f));
  writer.value("tokenizer.ggml.token_type", kinds);
  writer.value("tokenizer.ggml.bos_token_id", 0u);
  writer.value("tokenizer.ggml.eos_token_id", 1u);
  writer.value("tokenizer.ggml.add_bos_token", adds_bos);
  return writer;
}

struct Opened {
  std::string file, log;
  Gguf gguf;
  Tokenizer tokenizer;
  ChatTemplate chat;

  explicit Opened(const GgufWriter& writer) : file(writer.file()) {
    Source source;
    REQUIRE(source.open_memory(file.data(), file.size()).ok());
    REQUIRE(gguf.open(std::move(source)).ok());
    REQUIRE(tokenizer.open(gguf, Log{}).ok());
    const Log to{[](void* self, uint32_t level, const char* text) {
                   *static_cast<std::string*>(self) += std::to_string(level) + " " + text + "\n";
                 },
                 &log};
    REQUIRE(chat.open(gguf, tokenizer, to).ok());
  }
  std::string render(const ChatInput& input) const {
    std::string out;
    const Status status = chat.render(input, {}, &out);
    INFO(error_text());
    REQUIRE(status.ok());
    return out;
  }
  std::string render() const {
    ChatInput input;
    input.messages = talk();
    return render(input);
  }
};

}  // namespace greta::test
