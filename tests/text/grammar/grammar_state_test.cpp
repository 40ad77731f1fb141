// What a session's grammar says of the tokens that may come next, from token to token, and where memory runs
// out.
#include <catch2/catch_test_macros.hpp>

#include "support/failing_memory.h"
#include "support/tiny_model.h"
#include "text/grammar/state.h"

using namespace greta;
using namespace greta::test;

namespace {

// Tokens have their number and a "t" as text.
struct Vocabulary {
  TinyModel tiny;
  Engine engine;
  explicit Vocabulary(uint32_t tokens) {
    TinyShape shape;
    shape.vocab = tokens;
    tiny = make_tiny(shape);
    open_engine(tiny.file, {}, &engine);
  }
  const Tokenizer& tokenizer() const { return *engine.model->tokenizer; }
  GrammarState state_of(std::string_view text) const {
    std::shared_ptr<const Grammar> grammar;
    REQUIRE(parse_grammar(text, "root", nullptr, &grammar).ok());
    GrammarState state;
    state.set(grammar);
    return state;
  }
  Status prepare(GrammarState& state, std::span<const int32_t> tokens, std::span<const uint64_t>* bits,
                 uint32_t vocab = 0) const {
    return state.prepare(tokenizer(), tokenizer().trie(), vocab ? vocab : tokenizer().size(), tokens, true,
                         bits);
  }
  std::vector<int32_t> allowed(GrammarState& state, std::span<const int32_t> tokens) const {
    std::span<const uint64_t> bits;
    REQUIRE(prepare(state, tokens, &bits).ok());
    REQUIRE(bits.size() == (tokenizer().size() + 63) / 64);
    std::vector<int32_t> ids;
    for (uint32_t id = 0; id < tokenizer().size(); ++id)
      if (bits[id / 64] >> (id % 64) & 1) ids.push_back(int32_t(id));
    return ids;
  }
};

}  // namespace

TEST_CASE("grammar state: each token of a vocabulary has its bit, and no other has", "[grammar]") {
  const Vocabulary words(321);  // one more than fill five words of bits
  GrammarState state = words.state_of("root ::= \"7t\" | \"320t\"");
  const int32_t begin[] = {1};
  CHECK(words.allowed(state, begin) == std::vector<int32_t>{7, 320});

  GrammarState empty = words.state_of("root ::= \"7t\"?");
  REQUIRE(words.tokenizer().is_end(2));
  std::span<const uint64_t> bits;
  for (const uint32_t vocab : {2u, 3u}) {  // of logits that lack the token that ends an answer, and have it
    REQUIRE(words.prepare(empty, begin, &bits, vocab).ok());
    CHECK((bits[0] >> 2 & 1) == (vocab > 2));
  }
}

// Three tokens take turns. Memory runs out at every place of a token's round, with and without a token that
// was taken back before it. The round is then repeated, and goes on as if nothing had been.
TEST_CASE("grammar state: where memory runs out the next try goes on", "[grammar]") {
  const Vocabulary words(330);
  constexpr int32_t kTurns[] = {7, 320, 8};
  for (const bool back : {false, true})
    for (uint32_t length : {1u, 2u, 5u, 16u, 17u, 33u})
      for (uint64_t fail_at = 1;; ++fail_at) {
        CAPTURE(back, length, fail_at);
        GrammarState state = words.state_of("root ::= (\"7t\" \"320t\" \"8t\")+");
        std::vector<int32_t> tokens = {1};
        const auto round = [&]() -> Status {
          std::span<const uint64_t> bits;
          const int32_t next = kTurns[(tokens.size() - 1) % 3];
          GRETA_TRY(words.prepare(state, tokens, &bits));
          return state.drawn(words.tokenizer(), next);
        };
        while (tokens.size() <= length) {
          REQUIRE(round().ok());
          tokens.push_back(kTurns[(tokens.size() - 1) % 3]);
        }
        if (back) {
          tokens.pop_back();
          state.truncate(uint32_t(tokens.size()) - 1);
        }
        bool failed;
        {
          const FailingMemory memory(fail_at);
          (void)guarded(round);
          failed = memory.failed();
        }
        if (!failed) break;
        std::vector<int32_t> expected = {kTurns[(tokens.size() - 1) % 3]};
        if (tokens.size() % 3 == 1 && tokens.size() > 1) expected.insert(expected.begin(), 2);  // may end
        REQUIRE(words.allowed(state, tokens) == expected);
      }
}
