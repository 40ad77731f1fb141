// Finds the last block: of several groups that share work, the group that finishes last combines what all
// have written. No group waits.
#ifndef GRETA_VULKAN_GROUP_TICKET_H
#define GRETA_VULKAN_GROUP_TICKET_H
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#include "kernels/abi/abi.h"

shared uint ticket_taken;  // how many groups were there before

void release_and_acquire() {
  memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer,
                gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible);
}

// Whether this group is the last of `groups` that call it with counter `index`, which is 0 before and after.
// The last group can then read what the others wrote to buffers. All threads call it.
bool is_last_group(uint_address counters, uint index, uint groups) {
  release_and_acquire();
  barrier();
  if (gl_LocalInvocationIndex == 0) {
    ticket_taken = atomicAdd(counters.at[index], 1, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                             gl_SemanticsAcquireRelease);
    if (ticket_taken + 1 == groups) counters.at[index] = 0;
  }
  barrier();
  release_and_acquire();
  return ticket_taken + 1 == groups;
}
#endif
