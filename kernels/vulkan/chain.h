// How a kernel takes part in the chain (kernels/abi/chain.h): chain_wait() before its first read of what an
// earlier stage wrote, and chain_end() after its last write. All threads of a group call both, with the
// address of the stage's cell, or 0 outside of a chain. The address is a field of the kernel's block, or
// CHAIN_BEHIND behind it.
#ifndef GRETA_VULKAN_CHAIN_H
#define GRETA_VULKAN_CHAIN_H
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
#include "kernels/abi/chain.h"
#include "kernels/vulkan/group_barrier.h"

layout(constant_id = 103) const uint kChained = 0;  // whether the device has chains

#define CHAIN_BEHIND layout(offset = kChainBehind) uint64_t chain

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer ChainCell_address { ChainCell cell; };

const uint kMostPolls = 1 << 21;       // after so many a group gives up
const uint kPollsBetweenLooks = 1024;  // after every so many a group looks whether another one has given up

void chain_group_barrier() { GROUP_BARRIER(gl_StorageSemanticsBuffer); }

// How many groups of a stage have ended. What they wrote can then be read.
uint chain_ended(ChainCell_address at) {
  return atomicLoad(at.cell.ended, gl_ScopeDevice, gl_StorageSemanticsBuffer,
                    gl_SemanticsAcquire | gl_SemanticsMakeVisible);
}

// Waits until `wanted` groups of the stage before have ended.
void chain_poll(ChainCell_address before, uint wanted) {
  for (uint poll = 1; chain_ended(before) < wanted; ++poll) {
    if (poll % kPollsBetweenLooks != 0) continue;
    if (before.cell.stuck.at[0] != 0) return;
    if (poll < kMostPolls) continue;
    before.cell.stuck.at[0] = 1;
    return;
  }
}

// The first look at the stage before goes out together with the loads that say which count to wait for.
void chain_wait(uint64_t chain) {
  if (kChained == 0 || chain == 0) return;
  if (gl_LocalInvocationIndex == 0) {
    ChainCell_address own = ChainCell_address(chain), before = ChainCell_address(chain - kChainStride);
    const uint groups = before.cell.groups, own_groups = own.cell.groups;
    const uint ended =
        atomicLoad(own.cell.ended, gl_ScopeDevice, gl_StorageSemanticsNone, gl_SemanticsRelaxed);
    const uint ended_before = chain_ended(before), wanted = (ended / own_groups + 1) * groups;
    if (ended_before < wanted) chain_poll(before, wanted);
  }
  chain_group_barrier();
}

// Adds `groups` to those of its stage that have ended: the group, and others that leave it to this one.
void chain_end_of(uint64_t chain, uint groups) {
  if (kChained == 0 || chain == 0) return;
  chain_group_barrier();
  if (gl_LocalInvocationIndex == 0)
    atomicAdd(ChainCell_address(chain).cell.ended, groups, gl_ScopeDevice, gl_StorageSemanticsBuffer,
              gl_SemanticsRelease | gl_SemanticsMakeAvailable);
}

// Adds the group to those of its stage that have ended.
void chain_end(uint64_t chain) { chain_end_of(chain, 1); }
#endif
