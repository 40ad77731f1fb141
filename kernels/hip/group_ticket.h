// Finds the last block: of several groups that share work, the group that finishes last combines what all
// have written. No group waits.
#pragma once
#include "kernels/hip/device.h"

// Whether this group is the last of `groups` that call it with counter `index`, which is 0 before and after.
// The last group can then read what the others wrote to global memory. All threads call it. `taken` is in
// SHARED memory that the group no longer needs: how many groups were there before.
DEVICE bool is_last_group(GLOBAL uint* counters, uint index, uint groups, uint& taken) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  group_barrier();
  if (thread_x() == 0) {
    taken = atomic_add(counters + index, 1);
    if (taken + 1 == groups) counters[index] = 0;
  }
  group_barrier();
  if (taken + 1 != groups) return false;
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
  return true;
}

SHARED uint ticket_taken;

DEVICE bool is_last_group(GLOBAL uint* counters, uint index, uint groups) {
  return is_last_group(counters, index, groups, ticket_taken);
}
