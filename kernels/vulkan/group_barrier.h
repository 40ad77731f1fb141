// A barrier of the group that makes its writes to memory of these kinds visible to all its threads. It is no
// function, since `storage` must be a constant expression: gl_StorageSemanticsBuffer, Shared or both.
#ifndef GRETA_VULKAN_GROUP_BARRIER_H
#define GRETA_VULKAN_GROUP_BARRIER_H
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model

#define GROUP_BARRIER(storage)                                    \
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeWorkgroup, (storage), \
                 gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible)
#endif
