// The sequences of an executor by themselves, without a device: what they have, share and go back to.
#include "engine/executor/sequences.h"

#include <catch2/catch_test_macros.hpp>
#include <cstring>

using namespace greta;

namespace {

// Two sequences with pages for 256 positions each, and with `states` in the pool of states.
struct Two {
  explicit Two(uint32_t states = 0) : sequences(Shape{}, {.sequences = 2}, plan_of(states)) {}
  static ExecutorPlan plan_of(uint32_t states) {
    ExecutorPlan plan;
    plan.pages_per_sequence = 4;
    plan.groups.group[0].pages = plan.pages = 8;
    plan.states = states;
    plan.checkpoints = states ? 1 : 0;
    return plan;
  }
  // What a step with these rows takes, as the executor asks for it.
  Status take(std::vector<TokenRow> rows) {
    sequences.clear_copies();
    sequences.note_wants(rows);
    GRETA_TRY(sequences.check_runs());
    GRETA_TRY(sequences.reserve_pages(sequences.wants()));
    GRETA_TRY(sequences.reserve_states(sequences.wants()));
    sequences.move_states();
    sequences.keep_inputs(rows);
    return {};
  }
  Sequences sequences;
};

std::vector<TokenRow> rows_of(uint32_t sequence, uint32_t begin, uint32_t end) {
  std::vector<TokenRow> rows;
  for (uint32_t p = begin; p < end; ++p) rows.push_back({1, p, sequence, RowOutput::None});
  return rows;
}

}  // namespace

TEST_CASE("sequences: each is in use once, and a step that is stopped is one that wants it", "[groups]") {
  Two two;
  uint32_t a = 9, b = 9, c = 9;
  CHECK(two.sequences.acquire(&a).ok());
  CHECK(two.sequences.acquire(&b).ok());
  CHECK(a != b);
  CHECK(two.sequences.acquire(&c).code == Code::Full);
  CHECK(!strcmp(error_text(), "all 2 sequences of the executor are in use"));
  two.sequences.release(a);
  CHECK(two.sequences.acquire(&c).ok());
  CHECK(c == a);
  REQUIRE(two.take(rows_of(b, 0, 3)).ok());
  two.sequences.cancel(a);
  CHECK_FALSE(two.sequences.is_cancelled());
  two.sequences.cancel(b);
  CHECK(two.sequences.is_cancelled());
  CHECK(two.sequences.take_cancel(b));
  CHECK_FALSE(two.sequences.take_cancel(b));
  CHECK_FALSE(two.sequences.is_cancelled());
}

TEST_CASE("sequences: what a step that fails would have copied is shared again", "[groups]") {
  Two two;
  REQUIRE(two.take(rows_of(0, 0, 70)).ok());
  two.sequences.fork(0, 1, 70);
  const uint32_t shared = two.sequences.pool(0).table(0)[1];
  CHECK(two.sequences.pool(0).table(1)[1] == shared);
  REQUIRE(two.take(rows_of(1, 70, 71)).ok());
  REQUIRE(two.sequences.copies(0).size() == 1);
  CHECK(two.sequences.copies(0)[0].from == shared);
  CHECK(two.sequences.pool(0).table(1)[1] != shared);
  two.sequences.take_back_copies();
  CHECK(two.sequences.pool(0).table(1)[1] == shared);
  CHECK(two.sequences.pool(0).users(shared) == 2);
}

TEST_CASE("sequences: a state goes on where it ends, back to a checkpoint, or is made anew", "[groups]") {
  Two two(4);  // one of each, the spare one and that of a checkpoint
  Sequences& s = two.sequences;
  REQUIRE(two.take(rows_of(0, 0, 10)).ok());
  CHECK(s.goes_on(0, 10));
  CHECK_FALSE(s.goes_on(0, 9));
  CHECK(two.take(rows_of(0, 9, 10)).code == Code::Argument);
  CHECK(!strcmp(error_text(), "a step at position 9 of sequence 0, whose state ends at 10"));
  s.keep_checkpoint(0, 10);
  REQUIRE(two.take(rows_of(0, 10, 14)).ok());
  CHECK(s.state_copies().size() == 1);  // the checkpoint has it, too
  const auto found = s.find_replay(0, 12);
  REQUIRE(found);
  CHECK((found->begin == 10 && found->end == 12 && found->row == 0));
  CHECK_FALSE(s.find_replay(0, 14));  // it stands there
  CHECK_FALSE(s.find_replay(0, 10));
  CHECK(s.truncate(0, 12) == 10);
  CHECK(s.goes_on(0, 10));
  CHECK(s.truncate(0, 5) == 0);
}

TEST_CASE("sequences: what is restored stays apart until all of it is there", "[groups]") {
  Two two(4);
  Sequences& s = two.sequences;
  REQUIRE(two.take(rows_of(0, 0, 10)).ok());
  const uint32_t before = s.pool(0).table(0)[0];
  REQUIRE(s.reserve_spare(100).ok());
  s.give_back_spare();
  CHECK(s.pool(0).table(0)[0] == before);
  CHECK(s.pool(0).free_pages() == 7);
  REQUIRE(s.reserve_spare(100).ok());
  s.take_spare(0, 100, CacheForm::Windows);
  s.give_back_spare();
  CHECK(s.pool(0).table(0).size() == 2);
  CHECK(s.pool(0).free_pages() == 6);
  CHECK(s.can_save(0, 100));
  CHECK_FALSE(s.can_save(0, 10));
}
