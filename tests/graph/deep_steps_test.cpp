// Steps at a great depth are run in pieces, so that no launch of attention takes a GPU too long.
#include "engine/executor/deep_steps.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "support/tiny_model.h"

using namespace greta;
using namespace greta::test;
using Row = Executor::Row;
using Output = Executor::Output;

namespace {

constexpr uint32_t kHeads = 32, kWidth = 128;  // of an 8B model

// What attention of one layer computes for these rows.
uint64_t attention_flops(const std::vector<Row>& rows) {
  Call call;
  call.op = Op::Attention;
  call.attention.heads = kHeads;
  call.attention.kv_heads = 8;
  call.attention.key_width = call.attention.value_width = kWidth;
  call.attention.keys.type = call.attention.values.type = 1;
  uint64_t flops = 0;
  for (const Row& row : rows) flops += lead_of({&call, 1}).cost({&call, 1}, 1, row.position + 1).flops;
  return flops;
}

std::vector<Row> prompt(uint32_t end, uint32_t count, uint32_t sequence = 0) {
  std::vector<Row> rows;
  for (uint32_t p = end - count; p < end; ++p) rows.push_back({7, p, sequence, Output::None});
  rows.back().output = Output::Draw;
  return rows;
}

}  // namespace

TEST_CASE("a deep step is cut so that attention ends within the time of a submission", "[graph]") {
  Shape shape;
  shape.each.resize(1);
  shape.each[0].heads = kHeads;
  shape.each[0].key_width = shape.each[0].value_width = kWidth;
  struct Case {
    uint32_t units, depth, pieces;
  };
  for (const Case& c : {Case{12, 131072, 19}, Case{40, 131072, 6}, Case{2, 262144, 256}, Case{304, 131072, 1},
                        Case{12, 4096, 1}, Case{2, 1024, 1}}) {
    INFO(c.units << " units at " << c.depth);
    const DeviceInfo device = {.backend = "vulkan", .unit_count = c.units};
    const PieceLimits limits{512, most_pairs(device, shape)};
    const uint64_t limit = kSubmitFlops * c.units;
    std::vector<Row> rest = prompt(c.depth, 512), piece, all;
    uint32_t pieces = 1;
    for (; exceeds(rest, limits) && take_piece(&rest, limits, &piece); ++pieces) {
      CHECK(attention_flops(piece) <= limit);
      all.insert(all.end(), piece.begin(), piece.end());
    }
    CHECK(attention_flops(rest) <= limit);
    CHECK(pieces <= c.pieces);
    all.insert(all.end(), rest.begin(), rest.end());
    REQUIRE(all.size() == 512);
    for (uint32_t i = 0; i < 512; ++i) CHECK(all[i].position == c.depth - 512 + i);
  }
  CHECK(most_pairs({.backend = "cpu", .unit_count = 2, .cpu_type = true}, shape) == ~uint64_t(0));
}

TEST_CASE("rows with an output stay in the step's last piece, and what follows them", "[graph]") {
  std::vector<Row> rows = {{7, 900, 3, Output::Draw}}, piece;
  for (const Row& row : prompt(1000, 20, 1)) rows.push_back(row);
  for (const Row& row : prompt(500, 10, 2)) rows.push_back(row);
  rows[4].output = Output::Logits;  // the fourth row of sequence 1
  REQUIRE(take_piece(&rows, {512, 1'000'000}, &piece));
  REQUIRE(piece.size() == 3 + 9);
  for (const Row& row : piece) CHECK((row.sequence != 1 || row.position < 983));
  CHECK(rows.size() == 31 - 12);
  CHECK(!take_piece(&rows, {512, 1'000'000}, &piece));  // nothing is left that may go first
}

TEST_CASE("a step in pieces has the same bits as a whole one with plain kernels", "[graph]") {
  const TinyModel tiny = make_tiny({});
  std::vector<std::vector<float>> logits;
  for (const uint64_t pairs : {uint64_t(0), uint64_t(40), uint64_t(300)}) {
    Engine engine;
    EngineOptions options;
    options.executor.step_pairs = pairs;
    open_engine(tiny.file, options, &engine);
    std::vector<Row> rows;
    uint32_t sequences[2];
    for (uint32_t& sequence : sequences) REQUIRE(engine.executor->acquire_sequence(&sequence).ok());
    for (const uint32_t sequence : sequences)
      for (uint32_t p = 0; p < 70; ++p)
        rows.push_back({(p * 5 + sequence) % 67, p, sequence, p == 69 ? Output::Logits : Output::None});
    REQUIRE(engine.executor->step(rows).ok());
    logits.push_back({engine.executor->logits(), engine.executor->logits() + 2 * 67});
    // The next token of each, as a step of its own.
    const std::vector<Row> next = {{3, 70, sequences[0], Output::Logits},
                                   {4, 70, sequences[1], Output::None}};
    REQUIRE(engine.executor->step(next).ok());
    logits.back().insert(logits.back().end(), engine.executor->logits(), engine.executor->logits() + 67);
  }
  CHECK(logits[1] == logits[0]);
  CHECK(logits[2] == logits[0]);
}
