// kv_write and attention through one paged cache: what one writes the other reads.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <cstring>

#include "selftest/checks/cache_types.h"
#include "selftest/checks/checks.h"
#include "support/op_rig.h"

namespace greta::test {

using Catch::Generators::from_range;
TEST_CASE("attention: every row agrees with float64", "[ops]") {
  OpRig rig(GENERATE(from_range(rig_devices())));
  check_attention(rig);
}

// For subgroups of other sizes, whose kernels a driver compiles anew.
TEST_CASE("lanes: attention of some shapes agrees with float64", "[ops]") {
  OpRig rig;
  check_attention_lanes(rig);
}

TEST_CASE("kv_write: the cache holds the nearest values of its type", "[ops]") {
  OpRig rig;
  // Ties to even, the largest halves and beyond, denormals, zeros of both signs.
  const std::vector<float> x = {0.f,           -0.f,    1.f,    1.00048828125f, 1.00146484375f, 65504.f,
                                65519.f,       65520.f, -1e30f, 1e-30f,         6e-8f,          2.9802322e-8f,
                                8.9406967e-8f, 6.1e-5f, 0.1f,   -3.3f};
  for (uint32_t type = 0; type < kCacheTypeCount; ++type) {
    if (cache_block_of(type) != 1) continue;
    StepRows steps;
    steps.add(0, 0, 77);
    const uint32_t page_bytes = cache_page_bytes(type, 2, 8), bytes = page_bytes / (2 * 8 * kPageTokens);
    const Slice from = rig.put(x), step = steps.put(rig);
    const PoolPages pages = {rig.room(uint64_t(page_bytes) * steps.pool_pages()), page_bytes, type};
    const Call call = CallMaker{step}.kv_write(from, {2, 8}, pages);
    for (const KernelRow* row : rig.rows({&call, 1}, 1)) {
      rig.poison(call.slot[kPool]);
      rig.run({&call, 1}, *row, 1);
      const auto pool = rig.get<uint8_t>(call.slot[kPool]);
      std::vector<uint8_t> expected(pool.size(), 0xff);
      for (uint32_t i = 0; i < x.size(); ++i) {
        const uint64_t slot = uint64_t(i / 8) * kPageTokens + 77 % kPageTokens;
        uint8_t* at = &expected[uint64_t(steps.page(0, 77)) * page_bytes + (slot * 8 + i % 8) * bytes];
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
  const uint32_t page_bytes = cache_page_bytes(type, 2, width);
  const Slice from = rig.put(x), step = steps.put(rig);
  const PoolPages pages = {rig.room(uint64_t(page_bytes) * steps.pool_pages()), page_bytes, type};
  const Call call = CallMaker{step}.kv_write(from, {2, width}, pages);
  for (const KernelRow* row : rig.rows({&call, 1}, 1)) {
    rig.poison(call.slot[kPool]);
    rig.run({&call, 1}, *row, 1);
    const auto pool = rig.get<uint8_t>(call.slot[kPool]);
    const Values expected = reference::cached(x, kCacheTypes[type]);
    for (uint32_t h = 0; h < 2; ++h)
      for (uint32_t i = 0; i < width; ++i) {
        const uint64_t slot = uint64_t(h) * kPageTokens + 77 % kPageTokens;
        const uint8_t* block =
            &pool[uint64_t(steps.page(0, 77)) * page_bytes + slot * head_bytes + i / 32 * 34];
        CHECK(reference::half_at(block) * float(int8_t(block[2 + i % 32])) == expected[h * width + i]);
      }
  }
}

}  // namespace greta::test
