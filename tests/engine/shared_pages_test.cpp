// Pages with which several sequences of a step begin: which ones are found, and that reading them once
// changes logits by rounding alone.
#include "engine/executor/shared_pages.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <random>

#include "compute/kernel_table.h"
#include "models/reference_transformer.h"

using namespace greta;
using namespace greta::test;

namespace {

using Tables = std::vector<std::vector<uint32_t>>;

SharedPrefixes shared_of(const Tables& tables, uint32_t pages_saved) {
  std::vector<SharingRow> rows;
  for (uint32_t i = 0; i < tables.size(); ++i) rows.push_back({i, i + 100, tables[i]});
  SharedPrefixes found;
  find_shared_pages(rows, pages_saved, &found);
  return found;
}

std::vector<uint32_t> members_of(const SharedPrefixes& found, uint32_t prefix) {
  const uint32_t* first = found.member + found.prefix[prefix].first;
  return {first, first + found.prefix[prefix].count};
}

// `shared` pages of a number that says which, then `own` pages that nobody else has.
std::vector<uint32_t> table(uint32_t which, uint32_t shared, uint32_t own) {
  static uint32_t fresh = 1'000'000;
  std::vector<uint32_t> pages;
  for (uint32_t i = 0; i < shared; ++i) pages.push_back(which * 1000 + i);
  for (uint32_t i = 0; i < own; ++i) pages.push_back(fresh++);
  return pages;
}

}  // namespace

TEST_CASE("shared pages: those that save the most are found", "[engine][shared]") {
  SECTION("one prefix, whose members lie among others") {
    const SharedPrefixes found =
        shared_of({table(1, 9, 2), table(2, 9, 0), table(1, 9, 0), table(1, 9, 1), table(1, 9, 7)}, 27);
    REQUIRE(found.count == 1);
    CHECK(found.prefix[0].pages == 9);
    CHECK(found.prefix[0].sequence == 100);
    CHECK(members_of(found, 0) == std::vector<uint32_t>{0, 2, 3, 4});
    CHECK(found.row[1].pages == 0);
    CHECK((found.row[3].pages == 9 && found.row[3].prefix == 0 && found.row[3].place == 2));
  }
  SECTION("too few rows, pages or pages saved") {
    CHECK(shared_of({table(1, 50, 1), table(1, 50, 1), table(1, 50, 1)}, 1).count == 0);
    CHECK(shared_of(Tables(20, table(1, 3, 0)), 1).count == 0);
    CHECK(shared_of(Tables(4, table(1, 9, 0)), 28).count == 0);
    CHECK(shared_of({}, 1).count == 0);
  }
  SECTION("a few sequences that share less do not shorten the prefix of many") {
    Tables tables(6, table(1, 40, 0));
    for (int i = 0; i < 2; ++i) tables.push_back(table(1, 5, 9));
    const SharedPrefixes found = shared_of(tables, 100);
    REQUIRE(found.count == 1);
    CHECK(found.prefix[0].pages == 40);
    CHECK(members_of(found, 0) == std::vector<uint32_t>{0, 1, 2, 3, 4, 5});
  }
  SECTION("a prefix inside of another one") {
    Tables tables;
    for (int i = 0; i < 4; ++i) tables.push_back(table(1, 10, 1));
    for (int i = 0; i < 4; ++i) {
      tables.push_back(table(1, 100, 1));
      tables.push_back(table(1, 10, 1));
    }
    const SharedPrefixes found = shared_of(tables, 20);
    REQUIRE(found.count == 2);
    CHECK(found.prefix[0].pages == 100);
    CHECK(members_of(found, 0) == std::vector<uint32_t>{4, 6, 8, 10});
    CHECK(found.prefix[1].pages == 10);
    CHECK(members_of(found, 1) == std::vector<uint32_t>{0, 1, 2, 3, 5, 7, 9, 11});
    CHECK(found.prefix[1].first == 4);
  }
  SECTION("equal input gives equal bytes") {
    const Tables tables(5, table(3, 8, 0));
    const SharedPrefixes a = shared_of(tables, 1), b = shared_of(tables, 1);
    CHECK(!memcmp(&a, &b, sizeof a));
  }
}

TEST_CASE("shared pages: wherever their members stand they are found", "[engine][shared]") {
  SECTION("prefixes whose members take turns") {
    Tables tables;
    for (int i = 0; i < 4; ++i) tables.push_back(table(1, 9, 0)), tables.push_back(table(2, 9, 0));
    const SharedPrefixes found = shared_of(tables, 27);
    REQUIRE(found.count == 2);
    CHECK(members_of(found, 0) == std::vector<uint32_t>{0, 2, 4, 6});
    CHECK(members_of(found, 1) == std::vector<uint32_t>{1, 3, 5, 7});
  }
  SECTION("members before and behind a prefix that was taken") {
    Tables tables(4, table(1, 40, 0));
    for (uint32_t own = 1; own < 4; ++own) {
      tables.push_back(table(1, 5, 0));
      tables.back().push_back(own);  // so that it stands before the others
    }
    tables.push_back(table(1, 5, 1));  // behind them
    tables.push_back(table(2, 9, 0));  // and this shares nothing
    const SharedPrefixes found = shared_of(tables, 15);
    REQUIRE(found.count == 2);
    CHECK(members_of(found, 0) == std::vector<uint32_t>{0, 1, 2, 3});
    CHECK(members_of(found, 1) == std::vector<uint32_t>{4, 5, 6, 7});
  }
}

TEST_CASE("shared pages: what is found is true, in random trees of pages", "[engine][shared]") {
  std::mt19937 random(7);
  uint32_t most = 0;
  for (int round = 0; round < 200; ++round) {
    Tables tables;
    const uint32_t count = 1 + random() % 200;
    for (uint32_t i = 0; i < count; ++i) {
      if (i == 0 || random() % 8 == 0) {
        tables.push_back(table(uint32_t(round) * 300 + i, random() % 150, 0));
      } else {
        const std::vector<uint32_t> from = tables[random() % i];
        std::vector<uint32_t> fork(from.begin(), from.begin() + ptrdiff_t(random() % (from.size() + 1)));
        const std::vector<uint32_t> own = table(0, 0, random() % 20);
        fork.insert(fork.end(), own.begin(), own.end());
        tables.push_back(fork);
      }
    }
    const uint32_t saved = 1 + random() % 60;
    const SharedPrefixes found = shared_of(tables, saved);
    most = std::max(most, found.count);
    uint32_t members = 0;
    std::vector<uint32_t> taken(count);
    for (uint32_t p = 0; p < found.count; ++p) {
      const SharedPrefix& prefix = found.prefix[p];
      REQUIRE(prefix.first == members);
      REQUIRE(prefix.count >= kMinPrefixRows);
      REQUIRE(prefix.pages >= kMinPrefixPages);
      REQUIRE((prefix.count - 1) * prefix.pages >= saved);
      members += prefix.count;
      const std::vector<uint32_t>& leader = tables[prefix.sequence - 100];
      for (uint32_t i = 0; i < prefix.count; ++i) {
        const uint32_t row = found.member[prefix.first + i];
        REQUIRE(row < count);
        REQUIRE(!taken[row]++);
        REQUIRE(found.row[row].place == i);
        REQUIRE(found.row[row].prefix == p);
        REQUIRE(found.row[row].pages == prefix.pages);
        REQUIRE(tables[row].size() >= prefix.pages);
        REQUIRE(std::equal(leader.begin(), leader.begin() + prefix.pages, tables[row].begin()));
      }
    }
    for (uint32_t row = 0; row < count; ++row)
      if (!taken[row]) REQUIRE(found.row[row].pages == 0);
  }
  CHECK(most == kMaxPrefixes);
}

namespace {

constexpr uint32_t kSharing = 10, kNobody = ~0u;

// Steps of an executor whose sequences share the first pages of sequence 0, and one that shares nothing.
class SharingSteps {
 public:
  SharingSteps(Engine& engine, uint32_t vocab) : executor_(*engine.executor), vocab_(vocab) {
    uint32_t sequence = 0;
    for (uint32_t i = 0; i < kSharing + 1; ++i) REQUIRE(executor_.acquire_sequence(&sequence).ok());
    feed(0, 0, 300);
    // They end at different places, some within a page that they share with sequence 0 at first.
    const uint32_t at[kSharing] = {300, 256, 257, 266, 290, 299, 270, 300, 256, 280};
    for (uint32_t s = 0; s < kSharing; ++s) {
      if (s) executor_.fork_sequence(0, s, at[s]);
      position_.push_back(at[s]);
    }
    feed(kSharing, 0, 90);
    position_.push_back(90);
  }

  void leave(uint32_t sequence) {
    executor_.release_sequence(sequence);
    position_[sequence] = kNobody;
  }
  void truncate(uint32_t sequence, uint32_t position) {
    executor_.truncate(sequence, position);
    position_[sequence] = position;
  }
  void feed(uint32_t sequence, uint32_t begin, uint32_t end) {
    for (uint32_t first = begin; first < end; first += 32) {
      std::vector<Executor::Row> rows;
      for (uint32_t p = first; p < std::min(end, first + 32); ++p)
        rows.push_back({token(sequence, p), p, sequence, Executor::Output::None});
      REQUIRE(executor_.step(rows).ok());
    }
  }
  // One token of each sequence, and `prompt` more of the last one. Keeps the logits of all but these.
  void step(uint32_t prompt = 0) {
    std::vector<Executor::Row> rows = next();
    const uint32_t last = kSharing;
    for (uint32_t i = 1; i <= prompt; ++i)
      rows.push_back({token(last, position_[last] + i), position_[last] + i, last, Executor::Output::None});
    REQUIRE(executor_.step(rows).ok());
    const size_t count = (rows.size() - prompt) * vocab_;
    logits.insert(logits.end(), executor_.logits(), executor_.logits() + count);
    for (uint32_t& position : position_)
      if (position != kNobody) ++position;
    position_[last] += prompt;
  }
  // The kernels of one more step.
  std::vector<std::string> kernels() {
    std::vector<std::string> names;
    REQUIRE(executor_
                .profile(
                    next(),
                    [](void* to, const Executor::Stage& stage) {
                      static_cast<std::vector<std::string>*>(to)->push_back(stage.kernel);
                    },
                    &names)
                .ok());
    return names;
  }

  std::vector<float> logits;

 private:
  std::vector<Executor::Row> next() const {
    std::vector<Executor::Row> rows;
    for (uint32_t s = 0; s < position_.size(); ++s)
      if (position_[s] != kNobody)
        rows.push_back({token(s, position_[s]), position_[s], s, Executor::Output::Logits});
    return rows;
  }
  uint32_t token(uint32_t sequence, uint32_t position) const {
    return (sequence * 31 + position * 17 + 5) % vocab_;
  }

  Executor& executor_;
  uint32_t vocab_;
  std::vector<uint32_t> position_;
};

struct Run {
  std::vector<float> logits;
  bool read_once;
};

Run run_steps(const TinyModel& tiny, bool exact, uint32_t pages_saved, uint32_t cache_type) {
  EngineOptions options;
  options.exact = exact;
  options.executor = {.context = 512,
                      .sequences = kSharing + 1,
                      .key_type = cache_type,
                      .value_type = cache_type,
                      .cache_tokens = 4096,
                      .output_rows = 16,
                      .pages_saved = pages_saved};
  Engine engine;
  open_engine(tiny.file, options, &engine);
  SharingSteps steps(engine, tiny.shape.vocab);
  steps.step();
  steps.step();
  steps.leave(4);
  steps.step();
  steps.truncate(7, 250);  // in the last of the shared pages, which is copied before it is written
  for (int i = 0; i < 8; ++i) steps.step();
  steps.step(3);  // a mixed step
  for (const uint32_t sequence : {1u, 2u, 3u}) steps.leave(sequence);
  steps.step();
  const std::vector<std::string> kernels = steps.kernels();
  const bool read_once = std::ranges::any_of(
      kernels, [](const std::string& kernel) { return kernel.starts_with("attention_prefix_"); });
  return {steps.logits, read_once};
}

bool reads_once(const Device& device) {
  return std::ranges::any_of(kernel_table(), [&](const KernelRow& row) {
    return row.prefix == Prefix::Sums && usable(row, {&device.info(), false});
  });
}

bool device_reads_once(const TinyModel& tiny) {
  Engine engine;
  open_engine(tiny.file, {}, &engine);
  return reads_once(*engine.device);
}

}  // namespace

TEST_CASE("shared pages: sequences that share them have the logits of those that do not",
          "[engine][shared][shared-steps]") {
  const TinyModel tiny = make_tiny({.width = 128, .heads = 8, .kv_heads = 2, .head_width = 32});
  const bool there = device_reads_once(tiny);
  for (const uint32_t type : {0u, 1u}) {
    const Run once = run_steps(tiny, false, 4, type), each = run_steps(tiny, false, ~0u, type);
    CHECK(once.read_once == there);
    CHECK_FALSE(each.read_once);
    REQUIRE(once.logits.size() == each.logits.size());
    CHECK(nmse(once.logits.data(), {each.logits.begin(), each.logits.end()}) < 1e-5);
    if (there) CHECK(once.logits != each.logits);
  }
}

TEST_CASE("shared pages: in exact mode they change no bit", "[engine][shared][shared-steps]") {
  const TinyModel tiny = make_tiny({.layers = 1, .width = 64, .head_width = 16});
  const Run once = run_steps(tiny, true, 4, 1), each = run_steps(tiny, true, ~0u, 1);
  CHECK_FALSE(once.read_once);
  CHECK(once.logits == each.logits);
}
