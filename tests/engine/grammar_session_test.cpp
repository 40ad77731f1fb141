// A session's grammar after a fork, after a truncate and from one generation to the next, and tokens that a
// grammar names.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "engine/session/session.h"
#include "support/gguf_writer.h"
#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;

namespace {

struct Rig {
  TinyModel tiny;
  Engine engine;
  std::unique_ptr<Session> session;
  Rig() {
    TinyShape shape;
    shape.vocab = 300;
    tiny = make_tiny(shape);
    open_engine(tiny.file, {}, &engine);
    const std::shared_ptr<Executor> executor(engine.executor.get(), [](Executor*) {});
    REQUIRE(Session::open(executor, &session).ok());
  }
  const Tokenizer& tokenizer() const { return *engine.model->tokenizer; }
  std::shared_ptr<const Grammar> parse(std::string_view text) const {
    std::shared_ptr<const Grammar> grammar;
    const Status status = parse_grammar(text, "root", &tokenizer(), &grammar);
    INFO(error_text());
    REQUIRE(status.ok());
    return grammar;
  }
  // Feeds tokens and draws `count` tokens one by one. The last one is not fed.
  std::vector<int32_t> draw(Session& session, std::vector<int32_t> feed, uint32_t count) const {
    std::vector<int32_t> out;
    for (uint32_t i = 0; i < count; ++i) {
      const float* logits = nullptr;
      REQUIRE(session.eval(feed, OutputRows::Last, &logits).ok());
      int32_t token = kNoToken;
      const Status status = session.sample(logits, true, &token);
      INFO(error_text());
      REQUIRE(status.ok());
      out.push_back(token);
      feed = {token};
    }
    return out;
  }
  bool accepts(std::string_view grammar, std::span<const int32_t> tokens) const {
    GrammarMatcher matcher(parse(grammar));
    REQUIRE(matcher.reset().ok());
    for (const int32_t token : tokens)
      if (!matcher.push_token(token, tokenizer().piece(token)).ok()) return false;
    return true;
  }
};

// The vocabulary is "3t" to "299t". The rules take turns, so that a position that is off by one is noticed.
constexpr const char* kTurns =
    "root ::= (n [0-3] \"t\" n [4-6] \"t\" n [7-9] \"t\")* (n [0-3] \"t\" (n [4-6] \"t\")?)?\nn ::= [0-9]*";

SamplerSettings drawing(uint64_t seed) {
  SamplerSettings settings;
  settings.temperature = 5;
  settings.seed = seed;
  return settings;
}

}  // namespace

TEST_CASE("grammar: a fork goes on from where it is", "[grammar][session]") {
  Rig rig;
  REQUIRE(rig.session->set_sampling(drawing(3)).ok());
  rig.session->set_grammar(rig.parse(kTurns));
  std::vector<int32_t> first = rig.draw(*rig.session, {1, 5}, 6);
  std::unique_ptr<Session> child;
  REQUIRE(rig.session->fork(&child).ok());
  const auto mine = rig.draw(*rig.session, {first.back()}, 5), its = rig.draw(*child, {first.back()}, 5);
  CHECK(mine == its);  // the same seed and positions
  first.insert(first.end(), mine.begin(), mine.end());
  CHECK(rig.accepts(kTurns, first));
  // The two are independent: another seed gives another text of the same grammar.
  REQUIRE(child->set_sampling(drawing(4)).ok());
  const auto other = rig.draw(*child, {its.back()}, 9), again = rig.draw(*rig.session, {mine.back()}, 9);
  CHECK(other != again);
  first.insert(first.end(), other.begin(), other.end());
  CHECK(rig.accepts(kTurns, first));
}

TEST_CASE("grammar: a truncate takes it back, another text begins it anew", "[grammar][session]") {
  Rig rig;
  REQUIRE(rig.session->set_sampling(drawing(5)).ok());
  rig.session->set_grammar(rig.parse(kTurns));
  const auto all = rig.draw(*rig.session, {1, 5}, 12);
  REQUIRE(rig.accepts(kTurns, all));
  for (const uint32_t kept : {9u, 4u, 1u, 0u, 6u}) {
    // If the session keeps `kept` drawn tokens and the next one is fed again, the same tokens follow.
    REQUIRE(rig.session->truncate(0).ok());
    rig.session->set_grammar(rig.parse(kTurns));
    REQUIRE(rig.draw(*rig.session, {1, 5}, 12) == all);
    REQUIRE(rig.session->truncate(2 + kept).ok());
    const auto rest = rig.draw(*rig.session, {all[kept]}, 11 - kept);
    INFO("kept " << kept);
    CHECK(std::equal(rest.begin(), rest.end(), all.begin() + kept + 1));
  }
  // After a truncate below the first drawn token, or with another token in its place, the grammar begins
  // anew.
  REQUIRE(rig.session->truncate(1).ok());
  CHECK(rig.accepts(kTurns, rig.draw(*rig.session, {7}, 8)));
  REQUIRE(rig.session->truncate(5).ok());
  CHECK(rig.accepts(kTurns, rig.draw(*rig.session, {9}, 8)));
}

namespace {

// A vocabulary of "x", "y", "xy" and the bytes, and grammars that name its tokens.
struct TokenGrammars {
  std::string file = spm_vocabulary({"x", "y", "xy"}, std::vector<float>(3, -1.0f)).file();
  Gguf gguf;
  Tokenizer tokenizer;
  VocabTrie trie;
  int32_t x, y, xy;

  TokenGrammars() {
    Source source;
    REQUIRE(source.open_memory(file.data(), file.size()).ok());
    REQUIRE(gguf.open(std::move(source)).ok());
    REQUIRE(tokenizer.open(gguf, Log{}).ok());
    trie.build(tokenizer);
    x = tokenizer.find("x"), y = tokenizer.find("y"), xy = tokenizer.find("xy");
  }
  GrammarMatcher matcher_of(std::string_view text) const {
    std::shared_ptr<const Grammar> grammar;
    const Status status = parse_grammar(text, "root", &tokenizer, &grammar);
    INFO(text << error_text());
    REQUIRE(status.ok());
    GrammarMatcher matcher(grammar);
    REQUIRE(matcher.reset().ok());
    return matcher;
  }
  // Returns true if the grammar accepts exactly these tokens.
  bool takes(std::string_view text, std::vector<int32_t> tokens) const {
    GrammarMatcher matcher = matcher_of(text);
    for (const int32_t id : tokens)
      if (!matcher.push_token(id, tokenizer.piece(id)).ok()) return false;
    return matcher.may_end();
  }
  // The tokens with which a text of the grammar may begin.
  std::vector<int32_t> mask_of(std::string_view text) const {
    std::vector<uint64_t> bits((tokenizer.size() + 63) / 64);
    std::vector<int32_t> out;
    REQUIRE(matcher_of(text).mask(trie, bits).ok());
    for (uint32_t id = 0; id < tokenizer.size(); ++id)
      if (bits[id / 64] >> (id % 64) & 1) out.push_back(int32_t(id));
    return out;
  }
};

}  // namespace

TEST_CASE("grammar: tokens by id and by text", "[grammar]") {
  const TokenGrammars grammars;
  const int32_t x = grammars.x, y = grammars.y, xy = grammars.xy;
  CHECK(grammars.takes("root ::= <[70]> <[71]>", {70, 71}));
  CHECK_FALSE(grammars.takes("root ::= <[70]> <[71]>", {70, 70}));
  CHECK_FALSE(grammars.takes("root ::= <[70]>", {}));
  CHECK(grammars.takes("root ::= !<[70]>+ <[70]>", {71, 90, 70}));
  CHECK_FALSE(grammars.takes("root ::= !<[70]>", {70}));
  CHECK(grammars.takes("root ::= <s> [a-z]* </s>", {1, x, xy, 2}));  // control tokens, which have no bytes
  CHECK_FALSE(grammars.takes("root ::= <s> [a-z]* </s>", {2, x, 1}));
  CHECK_FALSE(grammars.takes("root ::= <s>", {x}));
  // A rule may go on by bytes and by a token at once.
  const std::string both = "root ::= <[" + std::to_string(x) + "]> \"y\" | \"xx\"";
  CHECK(grammars.takes(both, {x, y}));
  CHECK(grammars.takes(both, {x, x}));
  CHECK_FALSE(grammars.takes(both, {xy}));
  CHECK_FALSE(grammars.takes(both, {3 + 'x', y}));  // the same byte in another token
  CHECK(grammars.takes(both, {3 + 'x', x}));
}

TEST_CASE("grammar: a mask has the tokens that a grammar names", "[grammar]") {
  const TokenGrammars grammars;
  CHECK(grammars.mask_of("root ::= <[70]> | <s>") == std::vector<int32_t>{1, 70});
  CHECK(grammars.mask_of("root ::= \"x\"") == std::vector<int32_t>{3 + 'x', grammars.x});
  const auto others = grammars.mask_of("root ::= !<[70]>");
  CHECK(others.size() == grammars.trie.all.size() - 1);
  CHECK(std::find(others.begin(), others.end(), 70) == others.end());
}

TEST_CASE("grammar: a token that is not there, or is written wrong, is refused", "[grammar]") {
  const TokenGrammars grammars;
  const std::pair<const char*, const char*> wrong[] = {{"root ::= <nothing of it>", "no token has the text"},
                                                       {"root ::= <[999]>", "there is no token 999"},
                                                       {"root ::= <[x]>", "a number"},
                                                       {"root ::= <[5>", "]>"},
                                                       {"root ::= <s", "a token's text"},
                                                       {"root ::= !\"a\"", "the end of the rule"}};
  for (const auto& [text, what] : wrong) {
    std::shared_ptr<const Grammar> grammar;
    INFO(text);
    CHECK(parse_grammar(text, "root", &grammars.tokenizer, &grammar).code == Code::Argument);
    INFO(error_text());
    CHECK(std::string(error_text()).find(what) != std::string::npos);
  }
}
