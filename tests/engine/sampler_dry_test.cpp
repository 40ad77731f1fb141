// DRY with breakers that are longer than a token is compared with its definition by plain loops.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

#include "engine/sampling/steps.h"
#include "support/gguf_writer.h"
#include "text/tokenizer/tokenizer.h"

using namespace greta;
using namespace greta::test;

namespace {

// What DRY subtracts from logits, for a history whose repetitions may not reach before `begin`.
std::vector<double> penalties(const std::vector<int32_t>& history, size_t begin, const DrySettings& s,
                              size_t vocab) {
  std::vector<double> out(vocab, 0);
  const size_t count = history.size();
  for (size_t end = 0; end + 1 < count; ++end) {  // a repetition that ends at `end`
    size_t length = 0;
    while (length <= end && count - length > begin && history[end - length] == history[count - 1 - length])
      ++length;
    if (length < s.allowed_length) continue;
    double& penalty = out[size_t(history[end + 1])];
    penalty = std::max(penalty, s.multiplier * std::pow(double(s.base), double(length - s.allowed_length)));
  }
  return out;
}

}  // namespace

TEST_CASE("sampler: DRY's breakers of several tokens", "[sampler]") {
  std::mt19937 random(5);
  constexpr int32_t kVocab = 4;
  DrySettings dry;
  dry.multiplier = 0.7f;
  dry.allowed_length = 1;
  dry.breakers = {{1, {2}}, {3, {0, 1}}};  // "1 2" and "3 0 1"
  uint32_t crossed = 0;
  for (int repeat = 0; repeat < 2000; ++repeat) {
    std::vector<int32_t> history(2 + random() % 30);
    for (int32_t& each : history) each = int32_t(random() % kVocab);
    size_t begin = 0;  // the position after the last breaker
    for (size_t i = 0; i < history.size(); ++i) {
      if (i + 1 < history.size() && history[i] == 1 && history[i + 1] == 2) begin = i + 2;
      if (i + 2 < history.size() && history[i] == 3 && history[i + 1] == 0 && history[i + 2] == 1)
        begin = i + 3;
    }
    SamplerSettings settings;
    settings.dry = dry;
    Candidates candidates;
    for (int32_t id = 0; id < kVocab; ++id) candidates.list.push_back({10, id});
    SamplerTurn turn{settings, candidates, history, uint32_t(history.size() - 1)};
    apply_dry(turn);
    const auto expected = penalties(history, begin, dry, kVocab);
    crossed += expected != penalties(history, 0, dry, kVocab);
    for (const Candidate& each : candidates.list) {
      INFO("repeat " << repeat << " token " << each.id);
      REQUIRE(std::abs(10 - each.logit - expected[size_t(each.id)]) < 1e-4);
    }
  }
  CHECK(crossed > 200);  // breakers made a difference that often
}

TEST_CASE("sampler: DRY's breakers are found in the vocabulary", "[sampler]") {
  const std::string file =
      spm_vocabulary({"x", "yx", "yz", "xq", "z", "y", "\xE2\x96\x81"}, std::vector<float>(7, -1.0f)).file();
  Source source;
  Gguf gguf;
  Tokenizer tokenizer;
  REQUIRE(source.open_memory(file.data(), file.size()).ok());
  REQUIRE(gguf.open(std::move(source)).ok());
  REQUIRE(tokenizer.open(gguf, Log{}).ok());
  std::vector<DryBreaker> found;
  const std::string_view texts[] = {"xyz"};
  REQUIRE(find_dry_breakers(tokenizer, texts, &found).ok());
  const auto has = [&](std::string_view head, std::string_view rest) {
    for (const DryBreaker& each : found) {
      if (tokenizer.piece(each.token) != head) continue;
      std::string text;
      for (const int32_t token : each.tail) text += tokenizer.piece(token);
      if (text == rest) return true;
    }
    return false;
  };
  CHECK(has("x", "yz"));
  CHECK(has("yx", "yz"));  // the first token ends with the beginning of the text
  CHECK_FALSE(has("xq", "yz"));
  CHECK_FALSE(has("z", ""));
  for (const DryBreaker& each : found) CHECK_FALSE(each.tail.empty());  // no token holds all of it
  const std::string_view inside[] = {"q"};
  REQUIRE(find_dry_breakers(tokenizer, inside, &found).ok());
  CHECK(has("xq", ""));
}

TEST_CASE("sampler: DRY's breakers are written as within a text, without the token that begins one",
          "[sampler]") {
  const std::string file = bpe_vocabulary({"<|begin|>", "xy"}, {"x y"}, "llama-bpe")
                               .value("tokenizer.ggml.bos_token_id", 256u)
                               .value("tokenizer.ggml.add_bos_token", true)
                               .file();
  Source source;
  Gguf gguf;
  Tokenizer tokenizer;
  REQUIRE(source.open_memory(file.data(), file.size()).ok());
  REQUIRE(gguf.open(std::move(source)).ok());
  REQUIRE(tokenizer.open(gguf, Log{}).ok());
  std::vector<int32_t> whole;
  REQUIRE(tokenizer.encode("z", {true, false}, &whole).ok());
  REQUIRE(whole.size() == 2);
  std::vector<DryBreaker> found;
  const std::string_view texts[] = {"xyz"};
  REQUIRE(find_dry_breakers(tokenizer, texts, &found).ok());
  REQUIRE(!found.empty());
  for (const DryBreaker& each : found) CHECK(std::ranges::count(each.tail, whole[0]) == 0);
}
