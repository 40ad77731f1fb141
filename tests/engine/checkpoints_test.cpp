// Places to which texts can go back, by themselves: what is kept for guesses, forgotten, forked and given up.
#include "engine/executor/checkpoints.h"

#include <catch2/catch_test_macros.hpp>

using namespace greta;

namespace {

// Three sequences with a state each.
struct States {
  PagePool pool{{0, 1, 12}, 3, 1};
  Checkpoints checkpoints{pool, Checkpoints::Of::States, 3};
  States() {
    std::vector<PagePool::Copy> copies;
    const PagePool::Want wants[] = {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}};
    REQUIRE(pool.reserve(wants, &copies).ok());
  }
};

}  // namespace

TEST_CASE("checkpoints: those for guesses stay until they are dropped, as many as there may be", "[groups]") {
  States s;
  CHECK(s.checkpoints.keep_for_guesses(0, 10, 2));
  CHECK(s.checkpoints.keep_for_guesses(0, 10, 2));
  CHECK(s.checkpoints.last(0, 10) == 10);
  CHECK_FALSE(s.checkpoints.give_up());
  CHECK(s.checkpoints.keep_for_guesses(1, 7, 2));
  CHECK_FALSE(s.checkpoints.keep_for_guesses(2, 5, 2));
  s.checkpoints.drop_for_guesses(0);
  CHECK(s.checkpoints.last(0, 10) == 0);  // it was made for guesses alone
  CHECK(s.checkpoints.keep_for_guesses(2, 5, 2));
  s.checkpoints.make(0, 20);
  CHECK(s.checkpoints.give_up());
  CHECK_FALSE(s.checkpoints.give_up());
}

TEST_CASE("checkpoints: what lies behind a position is forgotten, and is no part of a fork", "[groups]") {
  States s;
  s.checkpoints.make(0, 20);
  s.checkpoints.make(0, 40);
  s.checkpoints.fork(0, 1, 30);
  CHECK(s.checkpoints.last(1, 100) == 20);
  s.checkpoints.fork(0, 2, 40);
  CHECK(s.checkpoints.last(2, 100) == 40);
  s.checkpoints.forget(0, 40);
  CHECK(s.checkpoints.last(0, 100) == 40);
  s.checkpoints.forget(0, 39);
  CHECK(s.checkpoints.last(0, 100) == 20);
}

TEST_CASE("checkpoints: as many pages as the next token sees", "[groups]") {
  CHECK(checkpoint_pages(1) == 0);
  CHECK(checkpoint_pages(2) == 1);
  CHECK(checkpoint_pages(kPageTokens + 1) == 1);
  CHECK(checkpoint_pages(kPageTokens + 2) == 2);
}
