// Guesses of the tokens that follow a text are compared with a plain search.
#include "engine/write/draft.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>
#include <vector>

using namespace greta;

namespace {

using Tokens = std::vector<int32_t>;

// What followed the last three tokens of the text where they last stood before.
Tokens plain_search(const Tokens& text, size_t most) {
  if (text.size() < 4) return {};
  for (size_t end = text.size() - 1; end >= 3; --end)
    if (std::equal(text.end() - 3, text.end(), text.begin() + long(end) - 3))
      return {text.begin() + long(end), text.begin() + long(std::min(end + most, text.size()))};
  return {};
}

Tokens guessed(const Draft& draft, uint32_t most) {
  const auto guess = draft.guess(most);
  return {guess.begin(), guess.end()};
}

Tokens guessed_after(const Tokens& text, uint32_t most) {
  Draft draft;
  draft.push(text);
  return guessed(draft, most);
}

}  // namespace

TEST_CASE("draft: it is what followed the same tokens when they stood in the text last", "[draft]") {
  CHECK(Draft().guess(7).empty());
  CHECK(guessed_after({1, 2, 3}, 7).empty());
  CHECK(guessed_after({1, 2, 3, 4, 5, 1, 2, 3}, 7) == Tokens{4, 5, 1, 2, 3});
  CHECK(guessed_after({1, 2, 3, 4, 5, 1, 2, 3}, 2) == Tokens{4, 5});
  CHECK(guessed_after({1, 2, 3, 4, 1, 2, 3, 9, 1, 2, 3}, 1) == Tokens{9});
  CHECK(guessed_after({7, 7, 7, 7}, 7) == Tokens{7});
}

TEST_CASE("draft: guesses of a growing text are those of a plain search", "[draft]") {
  std::mt19937 random(5);
  Draft draft;
  Tokens text;
  uint32_t found = 0;
  for (int i = 0; i < 2000; ++i) {
    Tokens next(1 + random() % 3);
    for (int32_t& token : next) token = int32_t(random() % 6);
    text.insert(text.end(), next.begin(), next.end());
    draft.push(next);
    const Tokens guess = guessed(draft, 7);
    CHECK(guess == plain_search(text, 7));
    found += !guess.empty();
  }
  CHECK(found > 1000);
}

TEST_CASE("draft: its depth follows what is right", "[draft]") {
  DraftDepth depth(7);
  depth.watched(true);
  CHECK(depth.depth() == 0);
  depth.watched(false);
  depth.watched(true);
  CHECK(depth.depth() == 0);
  depth.watched(true);
  CHECK(depth.depth() == 3);
  depth.verified(3, 3);
  CHECK(depth.depth() == 7);
  depth.verified(7, 2);
  CHECK(depth.depth() == 3);
  depth.verified(3, 0);
  CHECK(depth.depth() == 0);
  depth.watched(true);
  CHECK(depth.depth() == 0);
  DraftDepth shallow(1);
  shallow.watched(true);
  shallow.watched(true);
  CHECK(shallow.depth() == 1);
  CHECK(DraftDepth(0).depth() == 0);
}
