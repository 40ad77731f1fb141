// How far ahead the rows of a weight are prefetched, and where to.
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace {

// In whole steps of `step_bytes`, so that every line comes equally early. One thread of a Zen 5 read Q4_K
// rows at 15 GB/s without, 27 with 4 kB, 33 with 8 kB (a plain read: 35).
inline uint64_t prefetch_distance(uint64_t step_bytes) {
  return (8192 + step_bytes - 1) / step_bytes * step_bytes;
}

// The line at `address` comes into the second-level cache. A Zen 4 has few misses of its first level in
// flight: one thread there reads Q4_K at 11 GB/s if lines are asked into the first level, and at 17 GB/s into
// the second (Q6_K 10 and 25, Q4_0 11 and 18, F16 12 and 22). A Xeon (Emerald Rapids) reads the same either
// way.
inline void prefetch_weights(const void* address) { _mm_prefetch((const char*)address, _MM_HINT_T1); }

}  // namespace
