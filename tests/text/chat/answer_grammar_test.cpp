// A grammar begins where the parser of answers says that the answer begins.
#include "text/chat/answer_grammar.h"

#include <catch2/catch_test_macros.hpp>

#include "support/gguf_writer.h"
#include "text/grammar/json_schema.h"

using namespace greta;
using namespace greta::test;

namespace {

// The marks of channels and of Command R7B are control tokens, those of <think> are spelled.
struct Vocabulary {
  std::string file = bpe_vocabulary({"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|constrain|>",
                                     "<|START_THINKING|>", "<|END_THINKING|>", "<|other|>"},
                                    {}, "gpt-2")
                         .file();
  Gguf gguf;
  Tokenizer tokenizer;
  Vocabulary() {
    Source source;
    REQUIRE(source.open_memory(file.data(), file.size()).ok());
    REQUIRE(gguf.open(std::move(source)).ok());
    REQUIRE(tokenizer.open(gguf, Log{}).ok());
  }
};

std::shared_ptr<const Grammar> parse(const Vocabulary& v, std::string_view text) {
  std::shared_ptr<const Grammar> grammar;
  const Status status = parse_grammar(text, "root", &v.tokenizer, &grammar);
  INFO(error_text());
  REQUIRE(status.ok());
  return grammar;
}

std::shared_ptr<const Grammar> held(const Vocabulary& v, const ChatForm& form, std::string_view prompt,
                                    std::shared_ptr<const Grammar> grammar) {
  const Status status = hold_behind_reasoning(form, v.tokenizer, prompt, &grammar);
  INFO(error_text());
  REQUIRE(status.ok());
  return grammar;
}

// Returns true if the answer may be this text, written with control tokens where the vocabulary has them.
bool takes(const Vocabulary& v, std::shared_ptr<const Grammar> grammar, std::string_view text) {
  GrammarMatcher matcher(std::move(grammar));
  REQUIRE(matcher.reset().ok());
  std::vector<int32_t> tokens;
  REQUIRE(v.tokenizer.encode(text, {.add_special = false, .parse_special = true}, &tokens).ok());
  for (const int32_t token : tokens)
    if (!matcher.push_token(token, v.tokenizer.piece(token)).ok()) return false;
  return matcher.may_end();
}

struct Case {
  const char* form;    // marks that the template has
  const char* prompt;  // the end of it
  const char* text;
  bool fits;
};
constexpr Case kCases[] = {
    {"<think></think>", "<think>\n", "hm </thin </think>\n\n{}", true},
    {"<think></think>", "<think>\n", "<</</think></think>{}", false},
    {"<think></think>", "<think>\n", "\xff {} </</t</think>{}", true},
    {"<think></think>", "<think>\n", "</think>{}", true},
    {"<think></think>", "<think>\n", "{}", false},
    {"<think></think>", "<think>\n", "hm</think>{}{}", false},
    {"<think></think>", "<think>\n", "hm</think>so {}", false},
    {"<think></think>", "<think>\n", "hm</think>\n\n\n\n\n\n\n\n\n{}", false},
    {"<think></think>", "", "{}", true},
    {"<think></think>", "", "<think>a</think>{}", true},
    {"<think></think>", "", "\n<think>\n\n</think>\n\n{}", true},
    {"<think></think>", "", "a</think>{}", false},
    {"<think></think>", "", "<think>{}", false},
    {"<think></think>", "<think>\n\n</think>\n\n", "{}", true},
    {"<think></think>", "<think>\n\n</think>\n\n", "<think>a</think>{}", false},
    {"", "<think>\n", "{}", true},
    {"", "", "<think>a</think>{}", false},
    {"<think></think> [THINK]", "", "[THINK]a</think>b[/THINK]{}", true},
    {"<think></think> [THINK]", "", "[THINK]a</think>{}", false},
    {"<think></think><response></response>", "", "<think>a</think>\n<response> {}", true},
    {"<think></think><response></response>", "", "<response>{}", true},
    {"<|START_THINKING|><|START_RESPONSE|>", "", "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>{}",
     true},
    {"<|START_THINKING|><|START_RESPONSE|>", "", "<|START_THINKING|>a<|other|>b<|END_THINKING|>{}", false},
    {"<|channel|><|message|>", "<|start|>assistant",
     "<|channel|>analysis<|message|>a {}<|end|><|start|>assistant<|channel|>final<|message|>{}", true},
    {"<|channel|><|message|>", "<|start|>assistant", "<|channel|>final <|constrain|>json<|message|>{}", true},
    {"<|channel|><|message|>", "<|start|>assistant", "<|channel|>analysis<|message|>{}", false},
    {"<|channel|><|message|>", "<|start|>assistant", "{}", false},
};

}  // namespace

TEST_CASE("a grammar holds what the parser says is the answer", "[chat][grammar]") {
  const Vocabulary v;
  const auto grammar = parse(v, "root ::= \"{}\"");
  for (const Case& each : kCases) {
    INFO(each.form << " | " << each.prompt << " | " << each.text);
    const ChatForm form = chat_form(each.form);
    CHECK(takes(v, held(v, form, each.prompt, grammar), each.text) == each.fits);
    if (!each.fits) continue;
    std::string said;
    const ToolList none{};
    ChatParser parser(form, none, each.prompt,
                      {[&](std::string_view t) { return said += t, true; },
                       [](std::string_view) { return true; }, [](ChatCall) { return true; }});
    parser.push(each.text);
    parser.finish();
    CHECK(said == "{}");
  }
}

TEST_CASE("a grammar that writes marks of answers holds the whole answer", "[chat][grammar]") {
  const Vocabulary v;
  const ChatForm form = chat_form("<think></think><tool_call>");
  for (const char* text :
       {"root ::= [a-z]+ \"</think>\\n{}\"", "root ::= \"a \" call\ncall ::= \"<tool_call>{}\""}) {
    const auto grammar = parse(v, text);
    CHECK(held(v, form, "<think>\n", grammar) == grammar);
  }
  const auto tokens = parse(v, "root ::= \"a\" <|END_THINKING|> \"{}\"");
  CHECK(held(v, chat_form("<|START_THINKING|>"), "<|START_THINKING|>", tokens) == tokens);
  // What a schema says about a text is no mark.
  std::shared_ptr<const Grammar> schema;
  REQUIRE(parse_json_schema(R"({"const": "</think>"})", {}, &schema).ok());
  const auto behind = held(v, form, "<think>\n", schema);
  CHECK(takes(v, behind, "a</think>\"</think>\""));
  CHECK_FALSE(takes(v, behind, "\"</think>\""));
}

TEST_CASE("reasoning before a grammar is free, and its masks are remembered", "[chat][grammar]") {
  const Vocabulary v;
  GrammarMatcher matcher(held(v, chat_form("<think></think>"), "<think>", parse(v, "root ::= \"{}\"")));
  REQUIRE(matcher.reset().ok());
  VocabTrie trie;
  trie.build(v.tokenizer);
  std::vector<uint64_t> bits((v.tokenizer.size() + 63) / 64);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(matcher.mask(trie, bits).ok());
    for (uint32_t byte = 0; byte < 256; ++byte) CHECK((bits[byte / 64] >> (byte % 64) & 1));
    REQUIRE(matcher.push("</").ok());
  }
}
