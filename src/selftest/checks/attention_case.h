// A paged cache for checks of attention, which kv_write fills.
#pragma once
#include <algorithm>

#include "selftest/checks/cache_types.h"

namespace greta::selftest {

// Keys or values of every sequence by position, as they come out of the cache.
struct Cache {
  uint32_t heads, width, type, bytes;
  Slice pool;
  std::vector<Values> by_sequence;
};

inline Cache make_cache(Rig& rig, StepRows& steps, uint32_t heads, uint32_t width, uint32_t type) {
  Cache cache{
      heads, width, type, cache_page_bytes(type, heads, width), {}, std::vector<Values>(steps.sequences)};
  cache.pool = rig.room(uint64_t(cache.bytes) * steps.pool_pages());
  return cache;
}

// Writes positions begin .. end - 1 of a sequence, behind those that it has, with kv_write, at most 32 at a
// time.
inline void fill(Rig& rig, StepRows& steps, Cache& cache, uint32_t sequence, uint32_t begin, uint32_t end,
                 Random& random) {
  for (uint32_t first = begin; first < end; first += 32) {
    const uint32_t count = std::min(32u, end - first);
    StepRows some = steps;
    some.rows.clear();
    for (uint32_t t = 0; t < count; ++t) some.add(0, sequence, first + t);
    steps.table = some.table;
    const auto x = gaussians(size_t(count) * cache.heads * cache.width, random);
    const Slice from = rig.put_padded(x, 32 * cache.heads * cache.width);
    const Call call = CallMaker{some.put(rig)}.kv_write(from, {cache.heads, cache.width},
                                                        {cache.pool, cache.bytes, cache.type});
    rig.run({&call, 1}, *rig.plain_row({&call, 1}, 32), 32);  // the plain row, whichever kernels are wanted
    for (const KernelRow* row : rig.rows({&call, 1}, 32)) rig.run({&call, 1}, *row, 32);
    const Values held = reference::cached(x, kCacheTypes[cache.type]);
    cache.by_sequence[sequence].insert(cache.by_sequence[sequence].end(), held.begin(), held.end());
  }
}

// The limit of the NMSE. Rows on matrix units, whose subgroups share queries, have all operands in float16.
inline double limit_of(const KernelRow& row) { return row.code.subgroups ? 1e-6 : 1e-11; }

}  // namespace greta::selftest
