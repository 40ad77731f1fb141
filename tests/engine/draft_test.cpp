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

Tokens guessed(DraftSource& draft, uint32_t most) {
  Tokens guess;
  REQUIRE(draft.guess({}, most, &guess).ok());
  return guess;
}

Tokens guessed_after(const Tokens& text, uint32_t most) {
  TextDraft draft;
  draft.push(text);
  return guessed(draft, most);
}

}  // namespace

TEST_CASE("draft: it is what followed the same tokens when they stood in the text last", "[draft]") {
  CHECK(guessed_after({}, 7).empty());
  CHECK(guessed_after({1, 2, 3}, 7).empty());
  CHECK(guessed_after({1, 2, 3, 4, 5, 1, 2, 3}, 7) == Tokens{4, 5, 1, 2, 3});
  CHECK(guessed_after({1, 2, 3, 4, 5, 1, 2, 3}, 2) == Tokens{4, 5});
  CHECK(guessed_after({1, 2, 3, 4, 1, 2, 3, 9, 1, 2, 3}, 1) == Tokens{9});
  CHECK(guessed_after({7, 7, 7, 7}, 7) == Tokens{7});
}

TEST_CASE("draft: guesses of a growing text are those of a plain search", "[draft]") {
  std::mt19937 random(5);
  TextDraft draft;
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

TEST_CASE("draft: a text of which no guess is right verifies few of them", "[draft]") {
  for (const uint32_t most : {1u, 3u, 7u}) {
    DraftDepth depth(most, false);
    std::vector<uint32_t> steps;  // that verify guesses, by the tokens that were there
    for (uint32_t tokens = 0; tokens < 4000; ++tokens)
      if (const uint32_t guesses = depth.depth()) {
        CHECK(guesses == 1);
        steps.push_back(tokens);
        depth.verified(guesses, 0);
      } else {
        depth.passed();
      }
    CHECK(steps == std::vector<uint32_t>{0, 9, 42, 171, 684, 1197, 1710, 2223, 2736, 3249, 3762});
  }
}

TEST_CASE("draft: steps without a right guess end guesses sooner where none was right before", "[draft]") {
  const auto steps = [](uint32_t right_before) {
    DraftDepth depth(3, false);
    for (uint32_t i = 0; i < right_before; ++i) depth.verified(3, 3);
    uint32_t count = 0;
    for (; depth.depth(); ++count) depth.verified(depth.depth(), 0);
    return count;
  };
  CHECK(steps(0) == 1);
  CHECK(steps(1) == 4);
  CHECK(steps(20) == 5);
}

TEST_CASE("draft: the depth of guesses that cost work falls to 0 where they do not pay", "[draft]") {
  DraftDepth depth(7, false);
  CHECK(depth.depth() == 1);
  depth.verified(1, 1);
  CHECK(depth.depth() == 3);
  depth.verified(3, 3);
  CHECK(depth.depth() == 4);
  depth.verified(4, 4);
  CHECK(depth.depth() == 7);
  depth.verified(7, 2);
  CHECK(depth.depth() == 4);
  depth.verified(4, 0);
  CHECK(depth.depth() == 3);
  // Without a right one it is tried ever less often: of 2000 tokens few steps verify guesses.
  uint32_t wrong = 0, tokens = 0;
  for (; tokens < 2000; ++tokens) {
    if (depth.depth()) {
      wrong += depth.depth();
      depth.verified(depth.depth(), 0);
    } else {
      depth.passed();
    }
  }
  CHECK(wrong > 5);
  CHECK(wrong < 20);
  // It comes back when guesses are right again.
  for (tokens = 0; tokens < 600 && !depth.depth(); ++tokens) depth.passed();
  REQUIRE(depth.depth() == 1);
  for (uint32_t i = 0; i < 6; ++i) depth.verified(depth.depth(), depth.depth());
  CHECK(depth.depth() == 7);
  depth.stop();
  CHECK(depth.depth() == 0);
  for (tokens = 0; tokens < 2000; ++tokens) depth.passed();
  CHECK(depth.depth() == 0);
}
