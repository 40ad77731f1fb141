// What a kernel asks of its launch: which thread and group this is, where the argument block lies, that
// threads meet, and for memory that they share. Here the device answers. Bodies of decode_stages have
// persistent/stage_place.h in its place, with the same names.
#pragma once

DEVICE uint thread_x() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE uint group_x() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE uint group_y() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE uint group_z() { return __builtin_amdgcn_workgroup_id_z(); }

DEVICE const ARGUMENT void* argument_block() {
  return (const ARGUMENT void*)__builtin_amdgcn_kernarg_segment_ptr();
}

// All threads of the group meet, of which there are `threads`. It orders no memory.
DEVICE void meet_threads(uint) { __builtin_amdgcn_s_barrier(); }

// name[count] of `type`, where it is large. The bodies of decode_stages have such arrays on top of those of
// other bodies: `offset` is what the arrays before it take, which is 0 or END_OF the last of them.
#define SHARED_ARRAY(type, name, count, offset) SHARED type name[count]
