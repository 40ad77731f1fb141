// What GBNF grammars accept and refuse, at once and byte by byte; hostile grammars; masks over vocabularies.
#include "text/grammar/grammar.h"

#include <catch2/catch_test_macros.hpp>
#include <random>

#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;

namespace {

std::shared_ptr<const Grammar> parse(std::string_view text) {
  std::shared_ptr<const Grammar> grammar;
  const Status status = parse_grammar(text, "root", nullptr, &grammar);
  INFO(error_text());
  REQUIRE(status.ok());
  return grammar;
}

bool accepts(const std::shared_ptr<const Grammar>& grammar, std::string_view text, size_t piece = SIZE_MAX) {
  GrammarMatcher matcher(grammar);
  REQUIRE(matcher.reset().ok());
  for (size_t at = 0; at < text.size(); at += std::min(piece, text.size() - at))
    if (!matcher.push(text.substr(at, piece)).ok()) return false;
  return matcher.may_end();
}

struct Case {
  const char* grammar;
  std::vector<std::string_view> yes, no;
};

const Case kCases[] = {
    {"root ::= \"abc\"", {"abc"}, {"", "ab", "abcd", "abd"}},
    {"root ::= \"a\" | \"bc\" |", {"a", "bc", ""}, {"b", "abc"}},
    {"root ::= [a-c] [^a-c]",
     {"ax", "bé", "c\n", "a\xF0\x9F\x98\x80"},
     {"aa", "xa", "a", "axx", "a\xC3", "a\xFF"}},
    {"root ::= \"x\"*", {"", "x", "xxxx"}, {"y", "xxy"}},
    {"root ::= \"xy\"+", {"xy", "xyxy"}, {"", "x", "xyx"}},
    {"root ::= \"a\"? \"b\"", {"ab", "b"}, {"a", "aab", ""}},
    {"root ::= [0-9]{3}", {"123"}, {"12", "1234"}},
    {"root ::= [0-9]{2,}", {"12", "12345"}, {"1", ""}},
    {"root ::= [0-9]{0,2} \"z\"", {"z", "1z", "12z"}, {"123z"}},
    {"root ::= [0-9]{,2}", {}, {}},
    {"root ::= \"a\"{0} \"b\"", {"b"}, {"ab"}},
    {"root ::= (\"a\" | \"b\" (\"c\"\n | \"d\"))+ # all\n", {"a", "bc", "abdbc"}, {"b", "c", ""}},
    {"root ::= a b |\n  b a\na ::= \"1\"\n\nb ::=\n \"2\"", {"12", "21"}, {"11", "1"}},
    {"root ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", "())"}},
    {"root ::= (\"a\"?)*", {"", "aaa"}, {"b"}},
    {"root ::= (\"a\"* \"b\"*)* \"c\"", {"c", "abbac"}, {"ab"}},
    {"root ::= .", {"x", "\n", "é", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}, {"", "xy", "\xC3", "\x80"}},
    {"root ::= \"\\x41\\u00e9\\U0001F600\\n\\t\\r\\\\\\\"\"", {"Aé\xF0\x9F\x98\x80\n\t\r\\\""}, {"A"}},
    {"root ::= [\\]\\[\\\\a-]", {"]", "[", "\\", "a", "-"}, {"b"}},
    {"root ::= [ぁ-ゟ]+", {"あいう", "ゟ"}, {"a", "ア", "あ\xE3\x81"}},
    {"root ::= [\\u0000-\\U0010FFFF]",
     {"\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"},
     {"\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC0\x80"}},
    {"root ::= [\\u0700-\\u0901]", {"\xDC\x80", "\xE0\xA4\x81"}, {"\xDB\xBF", "\xE0\xA4\x82"}},
    {"root ::= e\ne ::= t (\"+\" t)*\nt ::= f (\"*\" f)*\nf ::= [0-9]+ | \"(\" e \")\"",
     {"1", "1+2*3", "((1+2)*34)"},
     {"1+", "+1", "(1", "1)"}},
    {"root ::= a-b c_d E2\na-b ::= \"1\"\nc_d ::= \"2\"\nE2 ::= \"3\"", {"123"}, {"12"}},
    {"# only a comment before\nroot ::= \"a\" # after\n\n# at the end", {"a"}, {"b"}},
    {"root ::= a\r\na ::= \"x\"\r\n", {"x"}, {"y"}},
};

}  // namespace

TEST_CASE("grammar: accepts and refuses", "[grammar]") {
  for (const Case& each : kCases) {
    INFO(each.grammar);
    std::shared_ptr<const Grammar> grammar;
    if (each.yes.empty()) {
      CHECK(parse_grammar(each.grammar, "root", nullptr, &grammar).code == Code::Argument);
      continue;
    }
    grammar = parse(each.grammar);
    for (const size_t piece : {SIZE_MAX, size_t(1), size_t(2)}) {
      for (const auto text : each.yes) {
        INFO("yes: " << text);
        CHECK(accepts(grammar, text, piece));
      }
      for (const auto text : each.no) {
        INFO("no: " << text);
        CHECK_FALSE(accepts(grammar, text, piece));
      }
    }
  }
}

TEST_CASE("grammar: what is wrong is said, with its line", "[grammar]") {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "no rule \"root\""},
      {"a ::= \"x\"", "no rule \"root\""},
      {"root ::= missing", "\"missing\" is used but not defined"},
      {"root ::= \"a", "the grammar ends"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2: the rule \"root\" is defined twice"},
      {"root ::= [z-a]", "backwards"},
      {"root ::= []", "without characters"},
      {"root ::= (\"a\"", "expected )"},
      {"root = \"a\"", "expected ::="},
      {"root ::= \"a\" )", "the end of the rule"},
      {"root ::= \"\\q\"", "a known escape"},
      {"root ::= \"\\uD800\"", "no character"},
      {"root ::= \"\\x4\"", "hexadecimal"},
      {"root ::= \"a\"{3,2}", "3 to 2"},
      {"root ::= \"a\"{1000000}", "at most"},
      {"root ::= \"a\"{99999999999999999999}", ""},
      {"root ::= root \"a\" | \"b\"", "left recursion"},
      {"root ::= a\na ::= b \"x\"\nb ::= c\nc ::= a | \"\"", "left recursion"},
      {"root ::= \"\"? root \"a\"", "left recursion"},
      {"root ::= (root)* \"a\"", "left recursion"},
      {"root ::= <x>", "no vocabulary"},
      {"root ::= \"a\"\n* \"b\"", "line 2"},
  };
  for (const auto& [text, what] : wrong) {
    std::shared_ptr<const Grammar> grammar;
    INFO(text);
    CHECK(parse_grammar(text, "root", nullptr, &grammar).code == Code::Argument);
    INFO(error_text());
    CHECK(std::string(error_text()).find(what) != std::string::npos);
    CHECK(grammar == nullptr);
  }
}

// llama.cpp#22234, CVE-2025-71379 and CVE-2026-73556.
// Reading a rule takes no time for those before it; else this would take a minute.
TEST_CASE("grammar: as many rules as fit are read", "[grammar]") {
  constexpr uint32_t kRules = 60000;
  std::string text = "root ::= r0\n";
  for (uint32_t i = 0; i < kRules; ++i) text += "r" + std::to_string(i) + " ::= \"x\"\n";
  REQUIRE(text.size() <= kMaxGrammarBytes);
  std::shared_ptr<const Grammar> grammar;
  REQUIRE(parse_grammar(text, "root", nullptr, &grammar).ok());
  CHECK_FALSE(parse_grammar(text + "r7 ::= \"y\"\n", "root", nullptr, &grammar).ok());
  CHECK(std::string(error_text()).starts_with("grammar, line 60002: "));
}

TEST_CASE("grammar: hostile ones end at a limit", "[grammar]") {
  const auto ends = [](const std::string& text) {
    std::shared_ptr<const Grammar> grammar;
    return parse_grammar(text, "root", nullptr, &grammar).code == Code::Argument;
  };
  CHECK(ends("root ::= " + std::string(100000, '(')));
  CHECK(ends(std::string(kMaxGrammarBytes + 1, ' ')));
  std::string repeated = "\"a\"";  // 10000^3 letters, in few rules
  for (int i = 0; i < 3; ++i) repeated = "(" + repeated + "){10000}";
  CHECK_FALSE(ends("root ::= " + repeated));
  repeated.clear();
  for (int i = 0; i < 200; ++i) repeated += "[a-c]{0,100000} ";
  CHECK(ends("root ::= " + repeated));
  // Every bracket doubles the stacks, so there are 2^n of them after n.
  const auto ambiguous = parse("root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"");
  GrammarMatcher matcher(ambiguous);
  REQUIRE(matcher.reset().ok());
  uint32_t taken = 0;
  Status status;
  while (taken < 100 && (status = matcher.push("a")).ok()) ++taken;
  CHECK(status.code == Code::Unsupported);
  CHECK(taken < 20);
  CHECK(matcher.push("d").ok());  // the failure has changed nothing
  // Texts up to the limit are allowed, and deeper ones are not.
  const auto nested = parse("root ::= \"(\" root \")\" | \"x\"");
  GrammarMatcher deep(nested);
  REQUIRE(deep.reset().ok());
  taken = 0;
  while (taken < 10 * kMaxGrammarDepth && deep.push("(").ok()) ++taken;
  CHECK(taken < kMaxGrammarDepth);
  CHECK(taken > kMaxGrammarDepth / 3);
}

TEST_CASE("grammar: forgetting states changes nothing", "[grammar]") {
  const auto grammar = parse("root ::= v\nv ::= \"[\" (v (\",\" v)*)? \"]\" | [0-9]+");
  std::mt19937 random(1);
  for (int repeat = 0; repeat < 3; ++repeat) {
    GrammarMatcher matcher(grammar);
    REQUIRE(matcher.reset().ok());
    // Open brackets and values come at random. Each depth is another stack, and there are far more than are
    // remembered.
    REQUIRE(matcher.push("[").ok());
    for (uint32_t i = 0, depth = 1; i < 100000; ++i) {
      const bool open = depth < 3 || (depth < 900 && random() % 2);
      REQUIRE(matcher.push(open ? "[" : "7],").ok());
      depth += open ? 1 : -1;
      REQUIRE_FALSE(matcher.may_end());
    }
  }
}

TEST_CASE("grammar: a mask has the tokens that a walk accepts", "[grammar]") {
  TinyShape shape;
  shape.vocab = 300;
  const TinyModel tiny = make_tiny(shape);  // the tokenizer reads its file in place
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  const Tokenizer& tokenizer = *engine.model->tokenizer;
  const VocabTrie& trie = tokenizer.trie();
  std::mt19937 random(2);
  for (const Case& each : kCases) {
    if (each.yes.empty()) continue;
    INFO(each.grammar);
    GrammarMatcher matcher(parse(each.grammar));
    for (const auto text : each.yes)
      for (size_t at = 0; at <= text.size(); ++at) {
        REQUIRE(matcher.reset().ok());
        REQUIRE(matcher.push(text.substr(0, at)).ok() == true);
        std::vector<uint64_t> bits((tokenizer.size() + 63) / 64);
        REQUIRE(matcher.mask(trie, bits).ok());
        CHECK(matcher.visited() <= trie.nodes.size());
        for (uint32_t id = 0; id < tokenizer.size(); ++id) {
          GrammarMatcher probe = matcher;
          const std::string piece = tokenizer.piece(int32_t(id));
          const bool fits = !piece.empty() && !tokenizer.is_end(int32_t(id)) && probe.push(piece).ok();
          INFO("token " << id << " after " << text.substr(0, at));
          REQUIRE(fits == (bits[id / 64] >> (id % 64) & 1));
        }
      }
  }
}

TEST_CASE("grammar: a token that is also text goes on as either, and as nothing else", "[grammar]") {
  TinyShape shape;
  shape.vocab = 300;
  const TinyModel tiny = make_tiny(shape);
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  const Tokenizer& tokenizer = *engine.model->tokenizer;
  REQUIRE(tokenizer.piece(7) == "7t");
  const std::string text = "root ::= \"7t\" \"y\" | <[7]> \"x\" | \"8t\" \"z\"";
  std::shared_ptr<const Grammar> grammar;
  REQUIRE(parse_grammar(text, "root", &tokenizer, &grammar).ok());
  GrammarMatcher matcher(grammar);
  REQUIRE(matcher.reset().ok());
  std::vector<uint64_t> bits((tokenizer.size() + 63) / 64);
  REQUIRE(matcher.mask(tokenizer.trie(), bits).ok());  // so that the state behind "8t" is known as well
  REQUIRE(matcher.push_token(7, "7t").ok());
  for (const char* next : {"x", "y", "z", "7"}) {
    GrammarMatcher probe = matcher;
    INFO(next);
    CHECK(probe.push(next).ok() == (*next == 'x' || *next == 'y'));
  }
}
