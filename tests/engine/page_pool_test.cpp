// The bookkeeping of pages, beside a plain account of which pages each sequence and others have.
#include "engine/executor/page_pool.h"

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <random>

using namespace greta;

namespace {

constexpr uint32_t kSequences = 4, kPagesOfSequence = 8, kGone = PagePool::kGone;

struct Account {
  uint32_t window, pages;
  PagePool pool;
  std::vector<uint32_t> held;  // by who is no sequence, of each page

  Account(uint32_t window, uint32_t pages)
      : window(window), pages(pages), pool({window, 1, pages}, kSequences, kPagesOfSequence), held(pages) {}

  std::vector<uint32_t> table(uint32_t sequence) const {
    const auto table = pool.table(sequence);
    return {table.begin(), table.end()};
  }
  std::vector<std::vector<uint32_t>> tables() const {
    std::vector<std::vector<uint32_t>> all;
    for (uint32_t s = 0; s < kSequences; ++s) all.push_back(table(s));
    return all;
  }
  // Each page has as many users as have it, and is free if nobody does.
  void check() const {
    std::vector<uint32_t> users = held;
    for (uint32_t s = 0; s < kSequences; ++s) {
      uint32_t gone = 0;
      for (const uint32_t page : pool.table(s)) page == kGone ? ++gone : ++users[page];
      REQUIRE(pool.gone(s) == gone);
      for (uint32_t i = 0; i < pool.table(s).size(); ++i) REQUIRE((pool.table(s)[i] == kGone) == (i < gone));
    }
    uint32_t free = 0;
    for (uint32_t page = 0; page < pages; ++page) {
      REQUIRE(pool.users(page) == users[page]);
      free += users[page] == 0;
    }
    REQUIRE(pool.free_pages() == free);
  }
  // Reserves positions of one sequence. It succeeds if there are enough free pages, and changes nothing else.
  bool reserve(uint32_t sequence, uint32_t begin, uint32_t end, std::vector<PagePool::Copy>* copies) {
    std::vector<std::vector<uint32_t>> expected = tables();
    std::vector<uint32_t>& own = expected[sequence];
    const uint32_t free = pool.free_pages(), first = begin / kPageTokens;
    uint32_t released = 0;
    for (uint32_t i = 0; i < std::min<size_t>(first_page_kept(window, begin), own.size()); ++i) {
      released += own[i] != kGone && pool.users(own[i]) == 1;
      own[i] = kGone;
    }
    const uint32_t last = uint32_t(divide_up(end, kPageTokens));
    uint32_t needed = last > own.size() ? last - uint32_t(own.size()) : 0;
    for (uint32_t i = first; i < std::min<size_t>(last, own.size()); ++i) needed += pool.users(own[i]) > 1;
    const PagePool::Want want{sequence, begin, end};
    const Status status = pool.reserve({&want, 1}, copies);
    REQUIRE(status.code == (needed <= free + released ? Code::Ok : Code::Full));
    if (!status.ok()) {
      REQUIRE(tables() == expected);
      return false;
    }
    for (uint32_t i = first; i < last; ++i) {
      const uint32_t now = pool.table(sequence)[i];
      REQUIRE(pool.users(now) == 1);
      if (i >= own.size())
        own.push_back(now);
      else if (own[i] != now) {
        const auto is_it = [&](const PagePool::Copy& c) {
          return c.from == own[i] && c.to == now && c.sequence == sequence && c.index == i;
        };
        REQUIRE(std::ranges::count_if(*copies, is_it) == 1);
        REQUIRE(pool.users(own[i]) > 0);  // it was shared
        own[i] = now;
      }
    }
    REQUIRE(tables() == expected);
    REQUIRE(free + released - pool.free_pages() == needed);
    return true;
  }
};

uint32_t positions(const Account& a, uint32_t sequence) {
  return uint32_t(a.pool.table(sequence).size()) * kPageTokens;
}

}  // namespace

TEST_CASE("pages: random calls leave each page with those who have it", "[groups]") {
  std::mt19937 random(5);
  for (const uint32_t window : {0u, 1u, 64u, 100u})
    for (int round = 0; round < 40; ++round) {
      Account a(window, 6 + round % 20);
      CAPTURE(window, round);
      for (int call = 0; call < 120; ++call) {
        const uint32_t s = random() % kSequences, other = (s + 1 + random() % (kSequences - 1)) % kSequences;
        std::vector<PagePool::Copy> copies;
        switch (random() % 8) {
          case 0:
          case 1:
          case 2: {
            const uint32_t begin = random() % (positions(a, s) + 1);
            const uint32_t end =
                std::min(begin + 1 + uint32_t(random() % 200), kPagesOfSequence * kPageTokens);
            if (begin >= end || !a.pool.whole(s, begin)) break;
            const auto before = a.tables();
            if (a.reserve(s, begin, end, &copies) && random() % 3 == 0) {
              a.pool.take_back(copies);
              for (const PagePool::Copy& copy : copies)
                REQUIRE(a.pool.table(s)[copy.index] == before[s][copy.index]);
            }
            break;
          }
          case 3:
            a.pool.truncate(other, 0);
            a.pool.fork(s, other, positions(a, s));
            REQUIRE(a.table(other) == a.table(s));
            break;
          case 4: {
            const uint32_t position = random() % (positions(a, s) + 1);
            std::vector<uint32_t> kept = a.table(s);
            kept.resize(divide_up(position, kPageTokens));
            a.pool.truncate(s, position);
            REQUIRE(a.table(s) == kept);
            break;
          }
          case 5:
            a.pool.exchange(s, other);
            break;
          case 6:
            a.pool.trim();
            break;
          case 7: {
            const uint32_t position = positions(a, s);
            if (!position || !a.pool.whole(s, position)) break;
            const auto seen = a.pool.seen(s, position);
            const std::vector<uint32_t> pages(seen.begin(), seen.end());
            a.pool.set_seen(other, position, pages);
            REQUIRE(a.pool.whole(other, position));
            REQUIRE(a.table(other).size() == position / kPageTokens);
            break;
          }
        }
        a.check();
      }
    }
}

TEST_CASE("pages: positions beyond a sequence's pages are refused, and those within are not", "[groups]") {
  Account a(0, 20);
  std::vector<PagePool::Copy> copies;
  const uint32_t all = kPagesOfSequence * kPageTokens;
  CHECK(a.reserve(0, 0, all, &copies));
  const PagePool::Want beyond{1, 0, all + 1};
  CHECK(a.pool.reserve({&beyond, 1}, &copies).code == Code::Full);
  CHECK(std::string(error_text()).find("position 512 is past the context window of 512 tokens") !=
        std::string::npos);
  CHECK(a.pool.table(1).empty());
}

TEST_CASE("pages: where they are short, others give theirs up as long as they have some", "[groups]") {
  for (const uint32_t spare : {0u, 1u, 2u, 3u}) {
    Account a(0, 4);
    std::vector<uint32_t> kept;
    for (uint32_t i = 0; i < 4; ++i) kept.push_back(a.pool.take());
    uint32_t left = spare, asked = 0;
    const auto give_up = [&] {
      ++asked;
      if (!left) return false;
      --left;
      a.pool.drop(kept.back());
      kept.pop_back();
      return true;
    };
    std::vector<PagePool::Copy> copies;
    const PagePool::Want wants[] = {{0, 0, kPageTokens}, {1, 0, 1}};
    CHECK(a.pool.reserve(wants, &copies, give_up).ok() == (spare >= 2));
    CHECK(asked == (spare >= 2 ? 2 : spare + 1));
    CHECK(a.pool.table(0).size() == (spare >= 2));
  }
}

TEST_CASE("pages: a window's are trimmed up to what may be gone back to", "[groups]") {
  const auto gone_after = [](uint32_t begin, uint32_t end) {
    Account a(64, 20);
    std::vector<PagePool::Copy> copies;
    if (begin) REQUIRE(a.reserve(0, 0, begin, &copies));
    REQUIRE(a.reserve(0, begin, end, &copies));
    a.pool.trim();
    a.check();
    return a.pool.gone(0);
  };
  CHECK(gone_after(0, 5 * 64 + kBackTokens - 1) == 3);
  CHECK(gone_after(0, 5 * 64 + kBackTokens) == 4);
  CHECK(gone_after(0, 6 * 64) == 4);
  CHECK(gone_after(6 * 64, 6 * 64 + 1) == 5);  // what the step itself sees stays, and no more
  CHECK(gone_after(0, 3) == 0);

  // A step that found no pages has begun all the same, and what it sees is there.
  Account a(64, 5);
  std::vector<PagePool::Copy> copies;
  REQUIRE(a.reserve(0, 0, 5 * 64, &copies));
  const PagePool::Want more{0, 4 * 64 - 1, 8 * 64};
  REQUIRE(a.pool.reserve({&more, 1}, &copies).code == Code::Full);
  a.pool.trim();
  CHECK(a.pool.whole(0, 4 * 64 - 1));
}
