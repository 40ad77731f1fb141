// kv_write and attention through one paged cache: what one writes the other reads.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <cstring>

#include "support/row_ops.h"

namespace greta::test {

using Catch::Generators::from_range;
namespace {

constexpr const char* kCacheTypes[] = {
#define CACHE_TYPE(name) #name,
#include "kernels/abi/cache_types.def"
#undef CACHE_TYPE
};
constexpr uint32_t kCacheTypeCount = sizeof kCacheTypes / sizeof kCacheTypes[0];

uint32_t page_bytes(uint32_t cache_type, uint32_t heads, uint32_t width) {
  QuantType type;
  REQUIRE(quant_from_name(kCacheTypes[cache_type], &type));
  return uint32_t(quant_bytes(type, uint64_t(heads) * kPageTokens * width));
}

uint32_t block_of(uint32_t cache_type) {
  QuantType type;
  REQUIRE(quant_from_name(kCacheTypes[cache_type], &type));
  return quant_info(type).block;
}

struct Shape {
  uint32_t heads, kv_heads, key_width, value_width, window;
  float softcap;
  bool sinks;
  uint32_t key_type, value_type;
  bool latent = false;  // the values are the beginning of the keys
};

// Keys or values of every sequence by position, as they come out of the cache.
struct Cache {
  uint32_t heads, width, type, bytes;
  Slice pool;
  std::vector<Values> by_sequence;
};

Cache make_cache(OpRig& rig, StepRows& steps, uint32_t heads, uint32_t width, uint32_t type) {
  Cache cache{heads, width, type, page_bytes(type, heads, width), {}, std::vector<Values>(steps.sequences)};
  cache.pool = rig.room(uint64_t(cache.bytes) * steps.pool_pages());
  return cache;
}

// Writes positions 0 .. length - 1 of a sequence with kv_write, at most 32 at a time.
void fill(OpRig& rig, StepRows& steps, Cache& cache, uint32_t sequence, uint32_t length, Random& random) {
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
    for (const KernelRow* row : rig.rows({&call, 1}, 32)) rig.run({&call, 1}, *row, 32);
    const Values held = reference::cached(x, kCacheTypes[cache.type]);
    cache.by_sequence[sequence].insert(cache.by_sequence[sequence].end(), held.begin(), held.end());
  }
}

// Others have no kernel row.
bool whole_blocks(const Shape& shape) {
  return shape.key_width % block_of(shape.key_type) == 0 &&
         shape.value_width % block_of(shape.value_type) == 0;
}

// The first `kept` of every `width` values.
Values beginnings(const Values& x, uint32_t width, uint32_t kept) {
  Values out;
  for (size_t i = 0; i < x.size(); ++i)
    if (i % width < kept) out.push_back(x[i]);
  return out;
}

// Queries at the given positions of two sequences of 150 and 64 tokens.
void check_shape(OpRig& rig, const Shape& shape, const Live& live, Random& random) {
  StepRows steps;
  Cache keys = make_cache(rig, steps, shape.kv_heads, shape.key_width, shape.key_type);
  Cache values = make_cache(rig, steps, shape.kv_heads, shape.value_width, shape.value_type);
  const uint32_t lengths[] = {150, 64};
  for (uint32_t sequence = 0; sequence < 2; ++sequence)
    for (Cache* cache : {&keys, &values})
      if (!shape.latent || cache == &keys) fill(rig, steps, *cache, sequence, lengths[sequence], random);
  const uint32_t positions[] = {149, 0, 63, 64, 127, 128, 1, 100};
  for (uint32_t t = 0; t < live.tokens; ++t) {
    const uint32_t sequence = t % 3 == 1, position = positions[(t * 3 + t / 8) % 8];
    steps.add(0, sequence, std::min(position, lengths[sequence] - 1));
  }
  const uint32_t q_width = shape.heads * shape.key_width, y_width = shape.heads * shape.value_width;
  const auto q = gaussians(size_t(live.tokens) * q_width, random, 2), sinks = gaussians(shape.heads, random);
  Call call = row_call(Op::Attention, rig.put_padded(q, live.bucket * q_width),
                       rig.room(uint64_t(live.bucket) * y_width * 4), steps.put(rig));
  call.slot[kPool] = keys.pool;
  call.slot[kPool2] = shape.latent ? keys.pool : values.pool;
  if (shape.sinks) call.slot[kTable] = rig.put(sinks);
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
    const Values seen = shape.latent ? beginnings(upto(keys), shape.key_width, shape.value_width) : upto(values);
    const Values y = reference::attention(to_values({from, from + q_width}), upto(keys), seen,
                                          shape.sinks ? to_values(sinks) : Values{}, oracle);
    expected.insert(expected.end(), y.begin(), y.end());
  }
  check_rows(rig, call, live.bucket, expected, 1e-11);
  if (live.bucket == 8) check_repeats(rig, call, live.bucket);
  rig.reset();
}

}  // namespace

TEST_CASE("attention: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(kRigDevices)));
  Random random(1);
  for (uint32_t type = 0; type < kCacheTypeCount; ++type) {
    const Shape shapes[] = {
        {1, 1, 8, 8, 0, 0, false, type, type},     {8, 4, 64, 64, 0, 0, false, type, type},
        {4, 4, 7, 33, 0, 30, true, type, 0},       {34, 2, 20, 16, 40, 0, false, 0, type},
        {6, 3, 128, 96, 64, 20, true, type, type}, {2, 1, 576, 512, 1, 0, false, type, type},
        {5, 1, 96, 64, 0, 0, false, type, type, true}, {4, 2, 40, 7, 70, 0, false, type, type, true},
    };
    for (const Shape& shape : shapes)
      for (const Live& live : live_rows(rig, 4))
        if (whole_blocks(shape)) check_shape(rig, shape, live, random);
  }
  rig.require_all_run(Op::Attention);
  rig.require_all_run(Op::KvWrite);
}

TEST_CASE("kv_write: the cache holds the nearest values of its type", "[ops]") {
  OpRig rig;
  // Ties to even, the largest halves and beyond, denormals, zeros of both signs.
  const std::vector<float> x = {0.f,           -0.f,    1.f,    1.00048828125f, 1.00146484375f, 65504.f,
                                65519.f,       65520.f, -1e30f, 1e-30f,         6e-8f,          2.9802322e-8f,
                                8.9406967e-8f, 6.1e-5f, 0.1f,   -3.3f};
  for (uint32_t type = 0; type < kCacheTypeCount; ++type) {
    if (block_of(type) != 1) continue;
    StepRows steps;
    steps.add(0, 0, 77);
    Call call = row_call(Op::KvWrite, rig.put(x), {}, steps.put(rig));
    call.heads = 2;
    call.width = 8;
    call.page_bytes = page_bytes(type, 2, 8);
    call.cache_type = type;
    call.slot[kPool] = rig.room(uint64_t(call.page_bytes) * steps.pool_pages());
    const uint32_t bytes = call.page_bytes / (2 * 8 * kPageTokens);
    for (const KernelRow* row : rig.rows({&call, 1}, 1)) {
      rig.poison(call.slot[kPool]);
      rig.run({&call, 1}, *row, 1);
      const auto pool = rig.get<uint8_t>(call.slot[kPool]);
      std::vector<uint8_t> expected(pool.size(), 0xff);
      for (uint32_t i = 0; i < x.size(); ++i) {
        const uint64_t slot = uint64_t(i / 8) * kPageTokens + 77 % kPageTokens;
        uint8_t* at = &expected[uint64_t(steps.page(0, 77)) * call.page_bytes + (slot * 8 + i % 8) * bytes];
        const double value = reference::cached({x[i]}, kCacheTypes[type])[0];
        const float exact = float(value);
        const uint16_t half =
            std::isinf(value) ? uint16_t(value < 0 ? 0xfc00 : 0x7c00) : reference::half_bits(value);
        memcpy(at, bytes == 4 ? (const void*)&exact : (const void*)&half, bytes);
      }
      REQUIRE(pool == expected);
    }
  }
}

TEST_CASE("kv_write: a cache of blocks", "[ops]") {
  OpRig rig;
  Random random(3);
  const uint32_t type = 2, width = 64, head_bytes = 68;
  REQUIRE(!strcmp(kCacheTypes[type], "q8_0"));
  std::vector<float> x = gaussians(2 * width, random);
  for (uint32_t i = 0; i < 32; ++i) x[i] = 0;
  for (uint32_t i = 32; i < 64; ++i) x[i] *= 1e-3f;  // a denormal scale
  x[64] = 8e6f;                                      // a large one
  StepRows steps;
  steps.add(0, 0, 77);
  Call call = row_call(Op::KvWrite, rig.put(x), {}, steps.put(rig));
  call.heads = 2;
  call.width = width;
  call.page_bytes = page_bytes(type, 2, width);
  call.cache_type = type;
  call.slot[kPool] = rig.room(uint64_t(call.page_bytes) * steps.pool_pages());
  for (const KernelRow* row : rig.rows({&call, 1}, 1)) {
    rig.poison(call.slot[kPool]);
    rig.run({&call, 1}, *row, 1);
    const auto pool = rig.get<uint8_t>(call.slot[kPool]);
    const Values expected = reference::cached(x, kCacheTypes[type]);
    for (uint32_t h = 0; h < 2; ++h)
      for (uint32_t i = 0; i < width; ++i) {
        const uint64_t slot = uint64_t(h) * kPageTokens + 77 % kPageTokens;
        const uint8_t* block =
            &pool[uint64_t(steps.page(0, 77)) * call.page_bytes + slot * head_bytes + i / 32 * 34];
        CHECK(reference::half_at(block) * float(int8_t(block[2 + i % 32])) == expected[h * width + i]);
      }
  }
}

}  // namespace greta::test
