// Finds the last block: of several groups that share work, the group that finishes last combines what all
// have written. No group waits.
#ifndef GRETA_VULKAN_GROUP_TICKET_H
#define GRETA_VULKAN_GROUP_TICKET_H
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#include "kernels/abi/abi.h"
#include "kernels/vulkan/group_barrier.h"

shared uint ticket_taken;  // how many groups were there before

void ticket_barrier() { GROUP_BARRIER(gl_StorageSemanticsBuffer | gl_StorageSemanticsShared); }

// Whether this group is the last of `groups` that call it with counter `index`, which is 0 before and after.
// The last group can then read what the others wrote to buffers. All threads call it: one of them releases to
// the device what its group wrote and acquires what others did, and the barriers hand both on.
bool is_last_group(uint_address counters, uint index, uint groups) {
  ticket_barrier();
  if (gl_LocalInvocationIndex == 0) {
    const int semantics = gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible;
    ticket_taken = atomicAdd(counters.at[index], 1, gl_ScopeDevice, gl_StorageSemanticsBuffer, semantics);
    if (ticket_taken + 1 == groups) counters.at[index] = 0;
  }
  ticket_barrier();
  return ticket_taken + 1 == groups;
}
#endif
