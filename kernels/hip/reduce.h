// Reductions over a group, in an order that depends only on its waves. All threads call them, and all get the
// result. The build defines GROUP; a group has whole waves. Shared memory: 8 bytes for each wave.
#pragma once
#include "kernels/hip/device.h"

struct Partial {
  uint low, high;
};
SHARED Partial reduce_partials[(GROUP + kWave - 1) / kWave];

DEVICE uint group_waves() { return group_threads() / kWave; }

// Leaves the wave's partial result in shared memory.
DEVICE void reduce_publish(Partial partial, uint from_lane = 0) {
  group_barrier();  // all threads have read those of the reduction before
  if (lane() == from_lane) reduce_partials[wave_index()] = partial;
  group_barrier();
}

template <class Join, class T>
DEVICE T group_join(T value) {
  reduce_publish({__builtin_bit_cast(uint, wave_join<Join>(value)), 0});
  T joined = __builtin_bit_cast(T, reduce_partials[0].low);
  for (uint i = 1; i < group_waves(); ++i)
    joined = Join::of(joined, __builtin_bit_cast(T, reduce_partials[i].low));
  return joined;
}
template <class T>
DEVICE T group_sum(T value) {
  return group_join<AddLanes>(value);
}
template <class T>
DEVICE T group_max(T value) {
  return group_join<MaxLanes>(value);
}
template <class T>
DEVICE T group_min(T value) {
  return group_join<MinLanes>(value);
}

struct KeyAndIndex {
  uint key, index;
};

// The largest key, and the lowest index that has it.
DEVICE KeyAndIndex group_best(uint key, uint index) {
  const uint maximum = wave_max(key);
  reduce_publish({maximum, wave_min(key == maximum ? index : ~0u)});
  KeyAndIndex best = {reduce_partials[0].low, reduce_partials[0].high};
  for (uint i = 1; i < group_waves(); ++i) {
    const Partial other = reduce_partials[i];
    if (other.low > best.key || (other.low == best.key && other.high < best.index))
      best = {other.low, other.high};
  }
  return best;
}

// The sum over the threads before this one; `total` is the sum over all.
DEVICE uint64_t group_sum_before(uint64_t value, uint64_t& total) {
  uint64_t sum = value;
  for (uint d = 1; d < kWave; d *= 2) {
    const bool adds = lane() >= d;
    const uint from = adds ? lane() - d : 0;
    const uint low = shuffle(uint(sum), from), high = shuffle(uint(sum >> 32), from);
    sum += adds ? uint64_t(high) << 32 | low : 0;
  }
  reduce_publish({uint(sum), uint(sum >> 32)}, kWave - 1);
  uint64_t all = 0, before = 0;
  for (uint i = 0; i < group_waves(); ++i) {
    before = i == wave_index() ? all : before;
    all += uint64_t(reduce_partials[i].high) << 32 | reduce_partials[i].low;
  }
  total = all;
  return before + sum - value;
}
DEVICE uint64_t group_sum(uint64_t value) {
  uint64_t total;
  group_sum_before(value, total);
  return total;
}
