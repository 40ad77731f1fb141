// Lists of a caller that are longer than anybody needs are refused before anything is made of them.
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string>
#include <vector>

#include "support/api_objects.h"

using namespace greta::test;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("api: too many messages, tools or biases are refused with both numbers", "[api]") {
  Objects o;
  REQUIRE(o.load() == GRETA_OK);

  const std::vector<greta_message> many(65'537,
                                        greta_message{.role = "user", .content = "a", .json = nullptr});
  size_t bytes = 0;
  CHECK(greta_tokenizer_chat(greta_model_tokenizer(o.model), many.data(), many.size(), 1, nullptr, 0,
                             &bytes) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("65537 messages, expected at most 65536"));

  const std::string tools = "[" + std::string(4 << 20, ' ') + "]";
  auto chat_options = sized<greta_chat_options>();
  chat_options.tools = tools.c_str();
  greta_chat* chat = nullptr;
  CHECK(greta_chat_open(o.session, &chat_options, &chat) == GRETA_ERROR_ARGUMENT);
  CHECK(chat == nullptr);
  CHECK_THAT(greta_error_text(), ContainsSubstring("4194306 bytes, expected at most 4194304"));

  const std::vector<int32_t> tokens(1000);
  const std::vector<float> biases(1000);
  CHECK(greta_session_logit_bias(o.session, tokens.data(), biases.data(), 1000) == GRETA_ERROR_ARGUMENT);
  CHECK_THAT(greta_error_text(), ContainsSubstring("1000 biases, and the model has 67 tokens"));
  CHECK(greta_session_logit_bias(o.session, tokens.data(), biases.data(), 1) == GRETA_OK);
}
