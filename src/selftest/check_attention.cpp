// kv_write and attention through one paged cache against float64: what one writes the other reads.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "selftest/cache_types.h"
#include "selftest/checks.h"

namespace greta::selftest {

namespace {

struct Shape {
  uint32_t heads, kv_heads, key_width, value_width, window;
  float softcap;
  bool sinks;
  uint32_t key_type, value_type;
  bool latent = false;  // the values are the beginning of the keys
  uint32_t length = 150;  // of the longer of two sequences
  bool prompt = false;    // the tokens are its last ones, in order
};

// Keys or values of every sequence by position, as they come out of the cache.
struct Cache {
  uint32_t heads, width, type, bytes;
  Slice pool;
  std::vector<Values> by_sequence;
};

Cache make_cache(Rig& rig, StepRows& steps, uint32_t heads, uint32_t width, uint32_t type) {
  Cache cache{
      heads, width, type, cache_page_bytes(type, heads, width), {}, std::vector<Values>(steps.sequences)};
  cache.pool = rig.room(uint64_t(cache.bytes) * steps.pool_pages());
  return cache;
}

// Writes positions 0 .. length - 1 of a sequence with kv_write, at most 32 at a time.
void fill(Rig& rig, StepRows& steps, Cache& cache, uint32_t sequence, uint32_t length, Random& random) {
  for (uint32_t first = 0; first < length; first += 32) {
    const uint32_t count = std::min(32u, length - first);
    StepRows some = steps;
    some.rows.clear();
    for (uint32_t t = 0; t < count; ++t) some.add(0, sequence, first + t);
    steps.table = some.table;
    const auto x = gaussians(size_t(count) * cache.heads * cache.width, random);
    Call call = row_call(Op::KvWrite, rig.put_padded(x, 32 * cache.heads * cache.width), {}, some.put(rig));
    call.slot[kPool] = cache.pool;
    call.heads = cache.heads;
    call.width = cache.width;
    call.page_bytes = cache.bytes;
    call.cache_type = cache.type;
    rig.run({&call, 1}, *rig.plain_row({&call, 1}, 32), 32);  // whatever kernel is checked by its name
    for (const KernelRow* row : rig.rows({&call, 1}, 32)) rig.run({&call, 1}, *row, 32);
    const Values held = reference::cached(x, kCacheTypes[cache.type]);
    cache.by_sequence[sequence].insert(cache.by_sequence[sequence].end(), held.begin(), held.end());
  }
}

// Others have no kernel row.
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

// Rows that also give y in the form that a matmul of a few tokens reads.
void check_rounded(Rig& rig, const Call& call, const Live& live, uint32_t width) {
  run_with_form(rig, call, Form::Q8X16, live, width,
                [&](const KernelRow& row, const std::vector<float>& y, const std::vector<uint8_t>& rounded) {
                  expect_rounded(row, y, rounded, width, {}, live.tokens);
                });
}

// Queries at the given positions of two sequences.
void check_shape(Rig& rig, const Shape& shape, const Live& live, Random& random) {
  StepRows steps(4, uint32_t(divide_up(shape.length, kPageTokens)) + 1);
  Cache keys = make_cache(rig, steps, shape.kv_heads, shape.key_width, shape.key_type);
  Cache values = make_cache(rig, steps, shape.kv_heads, shape.value_width, shape.value_type);
  const uint32_t lengths[] = {shape.length, 64};
  for (uint32_t sequence = 0; sequence < 2; ++sequence)
    for (Cache* cache : {&keys, &values})
      if (!shape.latent || cache == &keys) fill(rig, steps, *cache, sequence, lengths[sequence], random);
  const uint32_t positions[] = {shape.length - 1, 0, 63, 64, 127, 128, 1, 100};
  for (uint32_t t = 0; t < live.tokens; ++t) {
    const uint32_t sequence = !shape.prompt && t % 3 == 1;
    const uint32_t position = shape.prompt ? shape.length - live.tokens + t : positions[(t * 3 + t / 8) % 8];
    steps.add(0, sequence, std::min(position, lengths[sequence] - 1));
  }
  const uint32_t q_width = shape.heads * shape.key_width, y_width = shape.heads * shape.value_width;
  const auto q = gaussians(size_t(live.tokens) * q_width, random, 2), sinks = gaussians(shape.heads, random);
  Call call = row_call(Op::Attention, rig.put_padded(q, live.bucket * q_width),
                       rig.room(uint64_t(live.bucket) * y_width * 4), steps.put(rig));
  call.slot[kPool] = keys.pool;
  call.slot[kPool2] = shape.latent ? keys.pool : values.pool;
  if (shape.sinks) call.slot[kTable] = rig.put(sinks);
  if (live.bucket <= kMaxSplitTokens) {
    call.slot[kScratch] = rig.room(attention_scratch_bytes(live.bucket, shape.heads, shape.value_width));
    call.slot[kCounters] = rig.put(std::vector<uint32_t>(kCounterCount));
  }
  call.heads = shape.heads;
  call.kv_heads = shape.kv_heads;
  call.width = shape.key_width;
  call.value_width = shape.value_width;
  call.page_bytes = keys.bytes;
  call.value_page_bytes = shape.latent ? keys.bytes : values.bytes;
  call.y_stride = shape.latent ? shape.key_width : 0;
  call.cache_type = shape.key_type;
  call.value_cache_type = shape.value_type;
  call.scale = 1 / std::sqrt(float(shape.key_width));
  call.softcap = shape.softcap;
  call.window = shape.window;

  const reference::Attention oracle{shape.heads, shape.kv_heads, shape.key_width, shape.value_width,
                                    call.scale,  shape.softcap,  shape.window};
  Values expected;
  for (uint32_t t = 0; t < live.tokens; ++t) {
    const StepRow& row = steps.rows[t];
    const auto upto = [&](const Cache& cache) {
      const Values& all = cache.by_sequence[row.sequence];
      return Values(all.begin(),
                    all.begin() + ptrdiff_t(size_t(row.position + 1) * cache.heads * cache.width));
    };
    const auto* from = &q[size_t(t) * q_width];
    const Values seen =
        shape.latent ? beginnings(upto(keys), shape.key_width, shape.value_width) : upto(values);
    const Values y = reference::attention(to_values({from, from + q_width}), upto(keys), seen,
                                          shape.sinks ? to_values(sinks) : Values{}, oracle);
    expected.insert(expected.end(), y.begin(), y.end());
  }
  for (const KernelRow* row : rig.rows({&call, 1}, live.bucket)) {
    rig.poison(call.slot[kY]);
    rig.run({&call, 1}, *row, live.bucket);
    require_close(rig.get<float>(call.slot[kY]), expected, row->needs ? 1e-6 : 1e-11, row->name);
  }
  check_rounded(rig, call, live, y_width);
  check_halves(rig, call, live, y_width);
  if (live.bucket == 8) check_repeats(rig, call, live.bucket);
  if (live.bucket <= kMaxSplitTokens)
    for (const uint32_t counter : rig.get<uint32_t>(call.slot[kCounters]))
      expect(counter == 0, "attention: a counter is not 0 afterwards");
  rig.reset();
}

}  // namespace

// A GPU's kernels are compiled for each shape, for some seconds: all shapes with halves, some with the other types, of
// blocks also wide heads with all that may be asked of them, and a prompt.
bool worth_it(const Rig& rig, uint32_t type, const Shape& shape) {
  const bool all = type == 1 || !strcmp(rig.info().backend, "cpu"), blocks = cache_block_of(type) > 1;
  const bool everything = shape.window && shape.softcap > 0 && shape.sinks;
  return whole_blocks(shape) && (all || shape.key_width == 64 || shape.key_width == 96 ||
                                 (blocks && shape.key_width == 128 && (everything || (shape.prompt && !shape.window))));
}

void check_attention(Rig& rig) {
  Random random(1);
  for (uint32_t type = 0; type < kCacheTypeCount; ++type) {
    const Shape shapes[] = {
        {1, 1, 8, 8, 0, 0, false, type, type},         {8, 4, 64, 64, 0, 0, false, type, type},
        {4, 4, 7, 33, 0, 30, true, type, 0},           {34, 2, 20, 16, 40, 0, false, 0, type},
        {6, 3, 128, 96, 64, 20, true, type, type},     {2, 1, 576, 512, 1, 0, false, type, type},
        {5, 1, 96, 64, 0, 0, false, type, type, true}, {4, 2, 40, 7, 70, 0, false, type, type, true},
        {4, 1, 128, 128, 0, 0, true, type, type},      {10, 2, 80, 80, 100, 0, false, type, type},
        {4, 2, 256, 256, 100, 50, false, type, type},
    };
    for (const Shape& shape : shapes)
      for (const Live& live : live_rows(rig, 4, 2))  // few tokens and many have rows of their own
        if (worth_it(rig, type, shape)) check_shape(rig, shape, live, random);
    // A prompt, most of whose cache all tokens of a group see.
    const Shape prompt = {4, 1, 128, 128, 0, 0, true, type, type, false, 300, true};
    Shape in_window = prompt;
    in_window.window = 90;
    for (const Shape& shape : {prompt, in_window})
      if (!rig.checked() && worth_it(rig, type, shape)) check_shape(rig, shape, {128, 100}, random);
    // More pages than a row may split them into parts.
    if (!rig.checked() && (type == 1 || !strcmp(rig.info().backend, "cpu"))) check_shape(rig, {2, 1, 32, 32, 0, 0, true, type, type, false, 4500}, {2, 2}, random);
  }
  rig.require_all_run(Op::Attention);
  rig.require_all_run(Op::KvWrite);
}

void check_attention_lanes(Rig& rig) {
  Random random(2);
  for (const Live& live : live_rows(rig, 4)) check_shape(rig, {4, 1, 64, 64, 40, 0, true, 1, 1}, live, random);
}

}  // namespace greta::selftest
