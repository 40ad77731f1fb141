// Checks kv_write and attention against float64, through a paged cache that one writes and the other reads.
#include <algorithm>
#include <cmath>

#include "selftest/checks/attention_case.h"
#include "selftest/checks/checks.h"
#include "selftest/checks/sequences.h"

namespace greta::selftest {

namespace {

struct Shape {
  uint32_t heads, kv_heads, key_width, value_width, window;
  float softcap;
  bool sinks;
  uint32_t key_type, value_type;
  bool latent = false;    // the values are the beginning of the keys
  uint32_t length = 150;  // of the longer of two sequences
  bool prompt = false;    // the tokens are its last ones, in order
};

// Heads of other widths have no kernel row.
bool whole_blocks(const Shape& shape) {
  return shape.key_width % cache_block_of(shape.key_type) == 0 &&
         shape.value_width % cache_block_of(shape.value_type) == 0;
}

// The first `kept` of every `width` values.
Values beginnings(const Values& x, uint32_t width, uint32_t kept) {
  Values out;
  for (size_t i = 0; i < x.size(); ++i)
    if (i % width < kept) out.push_back(x[i]);
  return out;
}

// Checks kernel rows that also give y in the activation format that a matmul of a few tokens reads.
void check_rounded(Rig& rig, const Call& call, const Live& live, uint32_t width) {
  run_with_form(rig, call, Form::Q8X16, live, width,
                [&](const KernelRow& row, const std::vector<float>& y, const std::vector<uint8_t>& rounded) {
                  expect_rounded(row, y, rounded, width, {}, live.tokens);
                });
}

float scale_of(const Shape& shape) { return 1 / std::sqrt(float(shape.key_width)); }

// The expected result for the queries q of all rows of `steps`, [heads][key_width] each.
Values expected_of(const Shape& shape, const StepRows& steps, const Cache& keys, const Cache& values,
                   const std::vector<float>& q, const std::vector<float>& sinks) {
  const uint32_t q_width = shape.heads * shape.key_width;
  const reference::Attention oracle{shape.heads,     shape.kv_heads, shape.key_width, shape.value_width,
                                    scale_of(shape), shape.softcap,  shape.window};
  Values expected;
  for (size_t t = 0; t < steps.rows.size(); ++t) {
    const StepRow& row = steps.rows[t];
    const auto upto = [&](const Cache& cache) {
      const Values& all = cache.by_sequence[row.sequence];
      return Values(all.begin(),
                    all.begin() + ptrdiff_t(size_t(row.position + 1) * cache.heads * cache.width));
    };
    const auto* from = &q[t * q_width];
    const Values seen =
        shape.latent ? beginnings(upto(keys), shape.key_width, shape.value_width) : upto(values);
    const Values y =
        reference::attention(to_values({from, from + q_width}), upto(keys), seen, to_values(sinks), oracle);
    expected.insert(expected.end(), y.begin(), y.end());
  }
  return expected;
}

// Checks the rows that take a step's first rows, each of which is the only one of its sequence. What they
// compute does not ask for that: only heads that are made beside it do. `call` is that of all rows.
void check_lone(Rig& rig, Call call, StepRows steps, const Live& live, const Shape& shape,
                const Values& expected) {
  const uint32_t y_width = shape.heads * shape.value_width;
  if (live.bucket == 1) return;
  call.slot[kScratch] = rig.room(
      attention_lone_scratch_bytes(uint64_t(live.bucket), shape.heads, shape.kv_heads, shape.value_width));
  call.slot[kCounters] = rig.put(std::vector<uint32_t>(kCounterCount));
  Call first = call, others = call;
  call.attention.rows = AttentionRows::Lone;
  first.attention.rows = AttentionRows::FirstLone;
  others.attention.rows = AttentionRows::Others;
  for (const KernelRow* row : rig.rows({&first, 1}, live.bucket)) {
    steps.lone_count = live.tokens;
    call.slot[kStep] = steps.put(rig);
    rig.poison(call.slot[kY]);
    rig.run({&call, 1}, *row, live.bucket);
    require_close(rig.get<float>(call.slot[kY]), expected, 1e-11, row->name);
    check_rounded(rig, call, live, y_width);
    check_halves(rig, call, live, y_width);
    // With one width of heads: on the lane emulator a launch of so many groups takes long.
    if (shape.key_width == 128 && !shape.prompt) check_repeats(rig, call, live.bucket);
    steps.lone_count = divide_up(live.tokens, 2u);
    first.slot[kStep] = others.slot[kStep] = steps.put(rig);
    for (const KernelRow* rest : rig.rows({&others, 1}, live.bucket)) {
      rig.poison(call.slot[kY]);
      rig.run({&first, 1}, *row, live.bucket);
      rig.run({&others, 1}, *rest, live.bucket);
      require_close(rig.get<float>(call.slot[kY]), expected, limit_of(*rest),
                    std::string(row->name) + " before " + rest->name);
    }
    for (const uint32_t counter : rig.get<uint32_t>(call.slot[kCounters]))
      expect(counter == 0, "attention: a counter is not 0 afterwards");
  }
}

// Queries at the given positions of two sequences.
void check_shape(Rig& rig, const Shape& shape, const Live& live, Random& random) {
  StepRows steps(4, uint32_t(divide_up(shape.length, kPageTokens)) + 1);
  Cache keys = make_cache(rig, steps, shape.kv_heads, shape.key_width, shape.key_type);
  Cache values = make_cache(rig, steps, shape.kv_heads, shape.value_width, shape.value_type);
  const uint32_t lengths[] = {shape.length, 64};
  for (uint32_t sequence = 0; sequence < 2; ++sequence)
    for (Cache* cache : {&keys, &values})
      if (!shape.latent || cache == &keys) fill(rig, steps, *cache, sequence, 0, lengths[sequence], random);
  const uint32_t positions[] = {shape.length - 1, 0, 63, 64, 127, 128, 1, 100};
  for (uint32_t t = 0; t < live.tokens; ++t) {
    const uint32_t sequence = !shape.prompt && t % 3 == 1;
    const uint32_t position = shape.prompt ? shape.length - live.tokens + t : positions[(t * 3 + t / 8) % 8];
    steps.add(0, sequence, std::min(position, lengths[sequence] - 1));
  }
  const uint32_t q_width = shape.heads * shape.key_width, y_width = shape.heads * shape.value_width;
  const auto q = gaussians(size_t(live.tokens) * q_width, random, 2), sinks = gaussians(shape.heads, random);
  Slice scratch, counters;
  if (live.bucket <= kMaxSplitTokens) {
    scratch = rig.room(attention_scratch_bytes(live.bucket, shape.heads, shape.value_width));
    counters = rig.put(std::vector<uint32_t>(kCounterCount));
  }
  const Cache& read = shape.latent ? keys : values;
  const Slice x = rig.put_padded(q, live.bucket * q_width),
              y_slice = rig.room(uint64_t(live.bucket) * y_width * 4);
  Call call = CallMaker{steps.put(rig), counters}.attention(
      x, y_slice,
      {shape.heads, shape.kv_heads, shape.key_width, shape.value_width, scale_of(shape), shape.softcap,
       shape.window, shape.latent ? shape.key_width : 0},
      {keys.pool, keys.bytes, shape.key_type}, {read.pool, read.bytes, shape.value_type}, scratch);
  if (shape.sinks) call.slot[kTable] = rig.put(sinks);

  const Values expected =
      expected_of(shape, steps, keys, values, q, shape.sinks ? sinks : std::vector<float>());
  for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
    rig.poison(call.slot[kY]);
    rig.run({&call, 1}, *row, live.bucket);
    require_close(rig.get<float>(call.slot[kY]), expected, limit_of(*row), row->name);
  }
  check_rounded(rig, call, live, y_width);
  check_halves(rig, call, live, y_width);
  if (live.bucket == 8) check_repeats(rig, call, live.bucket);
  check_lone(rig, call, steps, live, shape, expected);
  if (live.bucket <= kMaxSplitTokens)
    for (const uint32_t counter : rig.get<uint32_t>(call.slot[kCounters]))
      expect(counter == 0, "attention: a counter is not 0 afterwards");
  rig.reset();
}

// A token's heads as the matmuls made them. The launch of attention normalises, rotates and stores them.
struct Heads {
  uint32_t heads, kv_heads, width, rope_width;  // rope_width 0: not rotated
  Normed normed;
  bool halves, stores_value;
  uint32_t key_type, value_type, length, window = 0;
  float softcap = 0;
  bool norms_value = false;  // without a gain
};

// Fails unless the heads of the steps' rows lie in their pages with the values `held`, and nothing else of
// the pool has changed.
void expect_stored(const Cache& cache, std::vector<uint8_t> pool, std::vector<uint8_t> before,
                   StepRows& steps, const Values& held, const std::string& what) {
  QuantType type;
  cache_quant(cache.type, &type);
  const reference::Quant& quant = *reference::find_quant(quant_info(type).name);
  const size_t head_bytes = quant_bytes(type, cache.width);
  std::vector<float> found;
  for (const StepRow& row : steps.rows)
    for (uint32_t h = 0; h < cache.heads; ++h) {
      const size_t slot = size_t(h) * kPageTokens + row.position % kPageTokens;
      const size_t at = size_t(steps.page(row.sequence, row.position)) * cache.bytes + slot * head_bytes;
      for (uint32_t i = 0; i < cache.width; ++i)
        found.push_back(float(quant.weight(&pool[at + i / quant.block * quant.bytes], i % quant.block)));
      for (auto* bytes : {&pool, &before})
        std::fill_n(bytes->begin() + ptrdiff_t(at), head_bytes, uint8_t(0));
    }
  require_close(found, held, cache_block_of(cache.type) > 1 || cache.type == 1 ? 1e-6 : 1e-12,
                what + ": the newest heads in their pages");
  expect(pool == before, what + ": bytes of the cache that are not of the newest heads were written");
}

// One token, or three of different sequences, which have different lengths.
class HeadsCase {
 public:
  HeadsCase(Rig& rig, const Heads& shape, uint32_t tokens, Random& random)
      : rig(rig),
        shape(shape),
        bucket(tokens > 1 ? 16 : 1),
        steps(3, uint32_t(divide_up(shape.length, kPageTokens)) + 1) {
    keys = make_cache(rig, steps, shape.kv_heads, shape.width, shape.key_type);
    values = make_cache(rig, steps, shape.kv_heads, shape.width, shape.value_type);
    const uint32_t lengths[] = {shape.length, 1, (shape.length + 1) / 2};
    for (uint32_t t = 0; t < tokens; ++t)
      for (Cache* cache : {&keys, &values}) fill(rig, steps, *cache, (t + 1) % 3, 0, lengths[t] - 1, random);
    for (uint32_t t = 0; t < tokens; ++t) steps.add(0, (t + 1) % 3, lengths[t] - 1);
    steps.lone_count = tokens;
    step = steps.put(rig);
    table = turns(shape.length, shape.rope_width);
    attention = make_attention(random);
    q = add_operand(shape.heads, attention.slot[kX], random);
    const Slice k = heads_of(shape.kv_heads, 3, random);
    newest_keys = add_operand(shape.kv_heads, k, random);
    add_write(k, keys);
    const Slice v = heads_of(shape.kv_heads, 1, random);
    const Values newest_values = add_values(v);
    add_write(v, values);
    if (!shape.stores_value) {
      rig.run_plain(calls.back(), bucket);
      calls.pop_back();
    }
    calls.push_back(attention);
    append(keys, newest_keys);
    append(values, newest_values);
  }

  void check() {
    const reference::Attention oracle{
        shape.heads,   shape.kv_heads, shape.width, shape.width, attention.attention.scale,
        shape.softcap, shape.window};
    const uint32_t width = shape.heads * shape.width;
    Values expected;
    for (size_t t = 0; t < steps.rows.size(); ++t) {
      const uint32_t sequence = steps.rows[t].sequence;
      const Values row(q.begin() + ptrdiff_t(t * width), q.begin() + ptrdiff_t((t + 1) * width));
      const Values y =
          reference::attention(row, keys.by_sequence[sequence], values.by_sequence[sequence], {}, oracle);
      expected.insert(expected.end(), y.begin(), y.end());
    }
    check_sequence(calls, Form::F32, expected);
    for (const Form form : {Form::Q8X16, Form::F16}) {
      const Slice to = rig.room(form_row_bytes(form, width) * bucket);
      std::vector<Call> rounding = calls;
      rounding.push_back(CallMaker{step}.convert(attention.slot[kY], to, form, width));
      check_sequence(rounding, form, expected);
    }
    rig.reset();
  }

 private:
  void check_sequence(const std::vector<Call>& sequence, Form form, const Values& expected) {
    const Slice& converted = sequence.back().slot[kY];
    const uint32_t width = shape.heads * shape.width, tokens = uint32_t(steps.rows.size());
    for (const KernelRow* row : rig.rows(sequence, bucket)) {
      const auto before = rig.get<uint8_t>(keys.pool), before_values = rig.get<uint8_t>(values.pool);
      rig.poison(attention.slot[kY]);
      rig.poison(converted);
      rig.run(sequence, *row, bucket);
      const bool exact = !shape.key_type && !shape.value_type;
      const std::vector<float> y = rig.get<float>(attention.slot[kY]);
      require_close(y, expected, exact ? 1e-11 : 1e-6, what(*row));
      expect_stored(keys, rig.get<uint8_t>(keys.pool), before, steps, newest(keys), what(*row));
      expect_stored(values, rig.get<uint8_t>(values.pool), before_values, steps, newest(values), what(*row));
      if (form == Form::Q8X16) expect_rounded(*row, y, rig.get<uint8_t>(converted), width, {}, tokens);
      if (form == Form::F16) expect_halves(*row, y, rig.get<uint8_t>(converted), tokens * width);
      if (rig.repeats() && shape.width == 128) check_repeats(rig, sequence, *row, bucket, attention.slot[kY]);
      for (const uint32_t counter : rig.get<uint32_t>(attention.slot[kCounters]))
        expect(counter == 0, "attention: a counter is not 0 afterwards");
    }
  }

  // Heads of the live rows as the matmuls gave them; rows of the bucket that are not live are poison.
  Slice heads_of(uint32_t heads, double size, Random& random) {
    const uint32_t width = heads * shape.width;
    return rig.put_padded(gaussians(steps.rows.size() * width, random, size), bucket * width);
  }
  Values live_part(const std::vector<float>& x, uint32_t heads) const {
    return to_values({x.begin(), x.begin() + ptrdiff_t(steps.rows.size() * heads * shape.width)});
  }

  Call make_attention(Random& random) {
    const Slice x = heads_of(shape.heads, 2, random), y = rig.room(bucket * shape.heads * shape.width * 4);
    const uint64_t scratch =
        bucket == 1 ? attention_scratch_bytes(1, shape.heads, shape.width)
                    : attention_lone_scratch_bytes(bucket, shape.heads, shape.kv_heads, shape.width);
    Call call = CallMaker{step, rig.put(std::vector<uint32_t>(kCounterCount))}.attention(
        x, y,
        {shape.heads, shape.kv_heads, shape.width, shape.width, 1 / std::sqrt(float(shape.width)),
         shape.softcap, shape.window},
        {keys.pool, keys.bytes, shape.key_type}, {values.pool, values.bytes, shape.value_type},
        rig.room(scratch));
    if (bucket > 1) call.attention.rows = AttentionRows::Lone;
    return call;
  }

  // Adds calls of norm and rope for the heads at x, and returns the expected result.
  Values add_operand(uint32_t heads, const Slice& x, Random& random) {
    Values y = live_part(rig.get<float>(x), heads);
    if (shape.normed != Normed::Not) {
      const uint32_t normed_heads = shape.normed == Normed::AllHeads ? 1 : heads;
      const auto gain = gaussians(heads * shape.width / normed_heads, random);
      calls.push_back(CallMaker{step}.norm(put_vector(rig, gain), x, x, 1e-5f, normed_heads));
      y = reference::norm(y, to_values(gain), double(calls.back().norm.epsilon));
    }
    if (!shape.rope_width) return y;
    if (!table_slice.buffer) table_slice = rig.put(table);
    calls.push_back(
        CallMaker{step}.rope(x, {heads, shape.width}, {table_slice, shape.rope_width, shape.halves}));
    Ids positions;
    for (const StepRow& row : steps.rows) positions.push_back(row.position);
    return reference::rope(y, positions, to_values(table),
                           {heads, shape.width, shape.rope_width, shape.halves});
  }

  // The same for values, which are at most normalised, without a gain.
  Values add_values(const Slice& x) {
    const Values y = live_part(rig.get<float>(x), shape.kv_heads);
    if (!shape.norms_value) return y;
    const std::vector<float> ones(shape.width, 1);
    calls.push_back(CallMaker{step}.norm(put_vector(rig, ones), x, x, 1e-5f, shape.kv_heads));
    calls.back().norm.alone = true;
    return reference::norm(y, to_values(ones), double(calls.back().norm.epsilon));
  }

  void add_write(const Slice& x, const Cache& cache) {
    calls.push_back(
        CallMaker{step}.kv_write(x, {cache.heads, cache.width}, {cache.pool, cache.bytes, cache.type}));
  }

  // Adds the newest heads of all rows to their sequences.
  void append(Cache& cache, const Values& newest) {
    const Values held = reference::cached({newest.begin(), newest.end()}, kCacheTypes[cache.type]);
    const ptrdiff_t width = cache.heads * cache.width;
    for (size_t t = 0; t < steps.rows.size(); ++t) {
      Values& all = cache.by_sequence[steps.rows[t].sequence];
      all.insert(all.end(), held.begin() + ptrdiff_t(t) * width, held.begin() + ptrdiff_t(t + 1) * width);
    }
  }
  Values newest(const Cache& cache) const {
    Values heads;
    for (const StepRow& row : steps.rows) {
      const Values& all = cache.by_sequence[row.sequence];
      heads.insert(heads.end(), all.end() - ptrdiff_t(cache.heads * cache.width), all.end());
    }
    return heads;
  }
  std::string what(const KernelRow& row) const {
    return std::string(row.name) + ", " + std::to_string(shape.heads) + "/" + std::to_string(shape.kv_heads) +
           " heads of " + std::to_string(shape.width) + ", " + kCacheTypes[shape.key_type];
  }

  Rig& rig;
  Heads shape;
  uint32_t bucket;
  StepRows steps;
  Cache keys, values;
  Slice step, table_slice;
  std::vector<float> table;
  std::vector<Call> calls;
  Call attention;
  Values q, newest_keys;
};

}  // namespace

// A GPU's driver compiles kernels for each shape, which takes seconds. So all shapes run with a cache of
// halves, and some with other types. Block types also run wide heads with everything on, and a prompt.
bool worth_it(const Rig& rig, uint32_t type, const Shape& shape) {
  const bool all = type == 1 || rig.info().host_functions, blocks = cache_block_of(type) > 1;
  const bool everything = shape.window && shape.softcap > 0 && shape.sinks;
  return whole_blocks(shape) &&
         (all || shape.key_width == 64 || shape.key_width == 96 ||
          (blocks && shape.key_width == 128 && (everything || (shape.prompt && !shape.window))));
}

void check_attention(Rig& rig) {
  Random random(1);
  for (uint32_t type = 0; type < kCacheTypeCount; ++type) {
    const Shape shapes[] = {
        {1, 1, 8, 8, 0, 0, false, type, type},         {20, 2, 64, 64, 0, 0, false, type, type, false, 300},
        {4, 4, 7, 33, 0, 30, true, type, 0},           {34, 2, 20, 16, 40, 0, false, 0, type},
        {6, 3, 128, 96, 64, 20, true, type, type},     {2, 1, 576, 512, 1, 0, false, type, type},
        {5, 1, 96, 64, 0, 0, false, type, type, true}, {4, 2, 40, 7, 70, 0, false, type, type, true},
        {4, 1, 128, 128, 0, 0, true, type, type},      {10, 2, 80, 80, 100, 0, false, type, type},
        {4, 2, 256, 256, 100, 50, false, type, type},  {6, 2, 64, 328, 0, 0, false, type, type},
        {4, 2, 264, 384, 70, 30, true, type, type},    {8, 1, 512, 512, 0, 0, false, type, type},
    };
    for (const Shape& shape : shapes)
      for (const Live& live : live_rows(rig, 4, 2))  // few and many tokens have kernel rows of their own
        if (worth_it(rig, type, shape)) check_shape(rig, shape, live, random);
    // A prompt in which all tokens of a group see most of the cache.
    const Shape prompt = {4, 1, 128, 128, 0, 0, true, type, type, false, 300, true};
    Shape in_window = prompt;
    in_window.window = 90;
    const Shape wide = {8, 1, 512, 512, 0, 0, false, type, type, false, 200, true};
    for (const Shape& shape : {prompt, in_window, wide})
      if (!rig.checked() && worth_it(rig, type, shape)) check_shape(rig, shape, {128, 100}, random);
    // More pages than a kernel row has groups for in a KV split.
    if (!rig.checked() && (type == 1 || rig.info().host_functions))
      check_shape(rig, {2, 1, 32, 32, 0, 0, true, type, type, false, 4500}, {2, 2}, random);
  }
  check_attention_heads(rig);
  check_attention_prefixes(rig);
  check_normed_values(rig);
  rig.require_all_run(Op::Attention);
  rig.require_all_run(Op::KvWrite);
}

void check_attention_heads(Rig& rig) {
  Random random(3);
  const Heads shapes[] = {
      {4, 1, 128, 128, Normed::EachHead, true, false, 1, 1, 150},
      {8, 4, 64, 32, Normed::EachHead, false, true, 2, 2, 64},
      {6, 3, 96, 24, Normed::AllHeads, true, false, 1, 1, 65},
      {4, 2, 64, 64, Normed::AllHeads, false, true, 0, 2, 1},
      {8, 1, 256, 256, Normed::EachHead, true, false, 1, 1, 700, 100},
      {4, 2, 64, 0, Normed::EachHead, true, false, 0, 0, 130, 0, 30},
      {8, 2, 64, 0, Normed::EachHead, true, true, 2, 2, 300, 64},
      {4, 1, 128, 0, Normed::Not, true, true, 2, 2, 1000},
      {4, 2, 64, 32, Normed::Not, true, false, 1, 1, 200},
      {8, 2, 64, 64, Normed::Not, false, true, 1, 1, 150},
      {34, 2, 24, 16, Normed::EachHead, true, false, 0, 1, 200},
      {4, 2, 256, 256, Normed::EachHead, true, true, 1, 1, 150, 100, 0, true},
      {6, 3, 96, 24, Normed::EachHead, true, true, 2, 0, 65, 0, 0, true},
      {5, 5, 40, 40, Normed::AllHeads, false, false, 1, 0, 129},
  };
  for (const Heads& shape : shapes)
    for (const uint32_t tokens : {1u, 3u}) HeadsCase(rig, shape, tokens, random).check();
}

void check_attention_lanes(Rig& rig) {
  Random random(2);
  for (const Live& live : live_rows(rig, 4))
    check_shape(rig, {4, 1, 64, 64, 40, 0, true, 1, 1}, live, random);
  check_attention_heads(rig);
  check_attention_prefixes(rig);
  rig.require_all_run(Op::Attention);
}

}  // namespace greta::selftest
