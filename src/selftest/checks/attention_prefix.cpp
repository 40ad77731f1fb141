// Checks attention over pages with which several sequences begin: one launch makes partial results of these
// pages for all rows that share them, and another one adds the positions behind.
#include <cmath>

#include "selftest/checks/attention_case.h"
#include "selftest/checks/checks.h"

namespace greta::selftest {

namespace {

struct PrefixShape {
  uint32_t heads, kv_heads, key_width, value_width;
  float softcap;
  bool sinks;
  uint32_t key_type, value_type;
};

constexpr uint32_t kSequences = 13, kPages = 16, kBucket = 16;
constexpr uint32_t kNoPrefix = ~0u;
// Of each sequence its prefix, and how many positions it has behind that. A sequence without a prefix has
// only these.
struct PrefixTail {
  uint32_t prefix, positions;
};
constexpr PrefixTail kTails[kSequences] = {
    {0, 1},  {1, 70}, {0, 63},  {kNoPrefix, 130}, {0, 64}, {1, 1}, {0, 300},
    {0, 200}, {1, 64}, {0, 7},  {1, 5},           {0, 65}, {kNoPrefix, 1}};
constexpr uint32_t kPrefixPages[] = {9, 2};

// A step of one row of each sequence.
class PrefixCase {
 public:
  PrefixCase(Rig& rig, const PrefixShape& shape, Random& random)
      : rig(rig),
        shape(shape),
        steps(kSequences, kPages),
        keys(make_cache(rig, steps, shape.kv_heads, shape.key_width, shape.key_type)),
        values(make_cache(rig, steps, shape.kv_heads, shape.value_width, shape.value_type)) {
    SharedPrefixes shared = {};
    shared.count = 2;
    uint32_t members = 0;
    for (uint32_t i = 0; i < 2; ++i) {
      SharedPrefix& prefix = shared.prefix[i];
      prefix = {kPrefixPages[i], members, 0, kNoPrefix};
      for (uint32_t s = 0; s < kSequences; ++s) {
        if (kTails[s].prefix != i) continue;
        if (prefix.sequence == kNoPrefix)
          fill_both(prefix.sequence = s, 0, prefix.pages * kPageTokens, random);
        else
          share(prefix.sequence, s, prefix.pages);
        shared.row[s] = {prefix.pages, i, prefix.count++};
        shared.member[members++] = s;
      }
    }
    for (uint32_t s = 0; s < kSequences; ++s) {
      const uint32_t begin = kTails[s].prefix == kNoPrefix ? 0 : kPrefixPages[kTails[s].prefix] * kPageTokens;
      fill_both(s, begin, begin + kTails[s].positions, random);
      steps.add(0, s, begin + kTails[s].positions - 1);
    }
    steps.prefixes = {shared};
    steps.lone_count = kSequences;
    q = gaussians(size_t(kSequences) * shape.heads * shape.key_width, random, 2);
    if (shape.sinks) sinks = gaussians(shape.heads, random);
  }

  void check() {
    make_calls(AttentionRows::Lone);
    const uint32_t width = shape.heads * shape.value_width;
    const Live live = {kBucket, kSequences};
    const Values expected = expected_of();
    for (const KernelRow* first : rows_for(sums, behind))
      for (const KernelRow* row : rows_for(behind, sums)) {
        rig.poison(behind.slot[kScratch]);
        rig.poison(behind.slot[kY]);
        rig.run({&sums, 1}, *first, kBucket);
        rig.run({&behind, 1}, *row, kBucket);
        require_close(rig.get<float>(behind.slot[kY]), expected, limit_of(*first),
                      std::string(row->name) + " behind " + first->name);
        run_with_form(rig, behind, Form::Q8X16, live, width,
                      [&](const KernelRow& of, const std::vector<float>& y, const std::vector<uint8_t>& to) {
                        expect_rounded(of, y, to, width, {}, kSequences);
                      });
        check_halves(rig, behind, live, width);
        check_repeats(rig, behind, kBucket);
        if (rig.repeats()) check_repeats(rig, {&sums, 1}, *first, kBucket, sums.slot[kScratch], 20);
        check_first(*first, *row, expected);
      }
    for (const uint32_t counter : rig.get<uint32_t>(behind.slot[kCounters]))
      expect(counter == 0, "attention: a counter is not 0 afterwards");
    rig.reset();
  }

 private:
  void fill_both(uint32_t sequence, uint32_t begin, uint32_t end, Random& random) {
    for (Cache* cache : {&keys, &values}) fill(rig, steps, *cache, sequence, begin, end, random);
  }
  // Gives a sequence the first pages of another one.
  void share(uint32_t from, uint32_t to, uint32_t pages) {
    for (uint32_t i = 0; i < pages; ++i)
      steps.table[to * kPages + i] = steps.table[from * kPages + i];
    for (Cache* cache : {&keys, &values}) cache->by_sequence[to] = cache->by_sequence[from];
  }

  void make_calls(AttentionRows rows) {
    const uint32_t q_width = shape.heads * shape.key_width, y_width = shape.heads * shape.value_width;
    const uint64_t own =
        attention_lone_scratch_bytes(uint64_t(kBucket), shape.heads, shape.kv_heads, shape.value_width);
    const uint64_t shared =
        attention_prefix_scratch_bytes(uint64_t(kBucket), shape.heads, shape.kv_heads, shape.value_width);
    const Slice scratch = rig.room(own + shared);
    behind = CallMaker{steps.put(rig), rig.put(std::vector<uint32_t>(kCounterCount))}.attention(
        rig.put_padded(q, kBucket * q_width), rig.room(uint64_t(kBucket) * y_width * 4),
        {shape.heads, shape.kv_heads, shape.key_width, shape.value_width, scale(), shape.softcap},
        {keys.pool, keys.bytes, shape.key_type}, {values.pool, values.bytes, shape.value_type}, scratch);
    if (shape.sinks) behind.slot[kTable] = rig.put(sinks);
    behind.attention.rows = rows;
    behind.attention.prefix = Prefix::Behind;
    sums = behind;
    sums.attention.prefix = Prefix::Sums;
    sums.slot[kY] = {};
    sums.slot[kScratch] = {scratch.buffer, scratch.offset + own, shared};
  }

  // The rows for a call, or the best one where only rows for the other call are wanted.
  std::vector<const KernelRow*> rows_for(const Call& call, const Call& other) const {
    std::vector<const KernelRow*> rows = rig.rows({&call, 1}, kBucket);
    if (rows.empty() && !rig.rows({&other, 1}, kBucket).empty())
      rows.push_back(best_row({&call, 1}, kBucket, {&rig.info(), false}));
    return rows;
  }

  // The last row is left to other kernels.
  void check_first(const KernelRow& first, const KernelRow& row, const Values& expected) {
    Call others = behind;
    others.attention.prefix = Prefix::None;
    others.attention.rows = AttentionRows::Others;
    StepRows some = steps;
    some.lone_count = kSequences - 1;
    const Slice step = some.put(rig);
    Call calls[] = {sums, behind};
    for (Call& call : calls) {
      call.attention.rows = AttentionRows::FirstLone;
      call.slot[kStep] = step;
    }
    others.slot[kStep] = step;
    for (const KernelRow* rest : rig.rows({&others, 1}, kBucket)) {
      rig.poison(behind.slot[kY]);
      rig.run({&calls[0], 1}, first, kBucket);
      rig.run({&calls[1], 1}, row, kBucket);
      rig.run({&others, 1}, *rest, kBucket);
      require_close(rig.get<float>(behind.slot[kY]), expected, 1e-6,
                    std::string(row.name) + " before " + rest->name);
    }
  }

  float scale() const { return 1 / std::sqrt(float(shape.key_width)); }
  Values expected_of() const {
    const uint32_t width = shape.heads * shape.key_width;
    const reference::Attention oracle{shape.heads, shape.kv_heads, shape.key_width, shape.value_width,
                                      scale(),     shape.softcap,  0};
    Values expected;
    for (uint32_t s = 0; s < kSequences; ++s) {
      const auto* from = &q[s * width];
      const Values y = reference::attention(to_values({from, from + width}), keys.by_sequence[s],
                                            values.by_sequence[s], to_values(sinks), oracle);
      expected.insert(expected.end(), y.begin(), y.end());
    }
    return expected;
  }

  Rig& rig;
  PrefixShape shape;
  StepRows steps;
  Cache keys, values;
  std::vector<float> q, sinks;
  Call sums, behind;
};

}  // namespace

void check_attention_prefixes(Rig& rig) {
  Random random(5);
  const PrefixShape shapes[] = {
      {12, 4, 40, 24, 0, false, 0, 0},
      {7, 1, 64, 64, 0, false, 2, 2},
      {20, 2, 64, 96, 20, false, 2, 1},
      {8, 2, 128, 128, 0, true, 1, 1},
  };
  if (std::ranges::none_of(kernel_table(), [&](const KernelRow& row) {
        return row.prefix != Prefix::None && usable(row, {&rig.info(), false}) && rig.takes(row);
      }))
    return;
  for (const PrefixShape& shape : shapes) PrefixCase(rig, shape, random).check();
}

}  // namespace greta::selftest
