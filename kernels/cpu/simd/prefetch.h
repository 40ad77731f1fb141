// How far ahead the rows of a weight are prefetched.
#pragma once
#include <stdint.h>

namespace {

// In whole steps of `step_bytes`, so that every line comes equally early. One thread read Q4_K rows at
// 15 GB/s without, 27 with 4 kB, 33 with 8 kB (a plain read: 35).
inline uint64_t prefetch_distance(uint64_t step_bytes) {
  return (8192 + step_bytes - 1) / step_bytes * step_bytes;
}

}  // namespace
