// Included in front of a kernel's own source when clang compiles it for the host: gives the AMD
// builtins that kernels/hip/device.h uses a body in the lane emulator, and makes the kernel known to
// the mock runtime. The build defines the target's macros (__gfx942__, __GFX9__).
#pragma once
#include "tests/mock_hip/kernel_registry.h"
#include "tests/mock_hip/lane_emulator.h"

#define GRETA_EMULATED
#define __builtin_amdgcn_workitem_id_x() (mock_hip::thread_in_group())
#define __builtin_amdgcn_workgroup_id_x() (mock_hip::group_index(0))
#define __builtin_amdgcn_workgroup_id_y() (mock_hip::group_index(1))
#define __builtin_amdgcn_workgroup_id_z() (mock_hip::group_index(2))
#define __builtin_amdgcn_grid_size_x() (mock_hip::group_count(0) * GROUP)
#define __builtin_amdgcn_grid_size_y() (mock_hip::group_count(1))  // groups have one thread along y and z
#define __builtin_amdgcn_grid_size_z() (mock_hip::group_count(2))
#define __builtin_amdgcn_kernarg_segment_ptr() (mock_hip::argument_block())
#define __builtin_amdgcn_s_barrier() mock_hip::meet_group()
#define __builtin_amdgcn_fence(...) ((void)0)  // groups and lanes run on coherent memory
#define __builtin_amdgcn_ds_bpermute(byte_address, value) mock_hip::shuffle_from(byte_address, value)
#define __builtin_amdgcn_readlane(value, lane) mock_hip::shuffle_from((lane) * 4, value)
#define __builtin_amdgcn_exp2f(value) __builtin_exp2f(value)
#define __hip_atomic_fetch_add(at, value, order, scope) __atomic_fetch_add(at, value, order)
#define __hip_atomic_load(at, order, scope) __atomic_load_n(at, order)
#define __hip_atomic_store(at, value, order, scope) __atomic_store_n(at, value, order)
#define __hip_atomic_compare_exchange_strong(at, expected, value, order, other, scope) \
  __atomic_compare_exchange_n(at, expected, value, false, order, other)

// sum + products of the signed bytes of a and b.
static inline int dot_of_bytes(int a, int b, int sum) {
  for (int i = 0; i < 4; ++i) sum += (signed char)(a >> i * 8) * (signed char)(b >> i * 8);
  return sum;
}
#define __builtin_amdgcn_sdot4(a, b, sum, clamp) dot_of_bytes(a, b, sum)
#define __builtin_amdgcn_sudot4(signed_a, a, signed_b, b, sum, clamp) dot_of_bytes(a, b, sum)
