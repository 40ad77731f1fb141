// What every HIP kernel may use. Kernels are freestanding: no HIP headers, no host code, no C
// library. Helpers are static or in an anonymous namespace, since each target has its own build of
// the same source. tests/mock_hip compiles that source for the host too (GRETA_EMULATED) and gives
// the builtins used here a body there.
#pragma once

#ifdef GRETA_EMULATED
#define KERNEL(threads) static
#define DEVICE static inline
#define SHARED static thread_local
#else
// launch_bounds is ignored by clang for amdgcn; this attribute is not.
#define KERNEL(threads) extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads)))
#define DEVICE static inline __attribute__((device, always_inline))
#define SHARED __attribute__((shared))
#endif

#ifdef __GFX9__
constexpr unsigned kWave = 64;  // lanes in lockstep: CDNA
#else
constexpr unsigned kWave = 32;  // RDNA
#endif

DEVICE unsigned thread_x() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE unsigned lane() { return __builtin_amdgcn_workitem_id_x() % kWave; }
DEVICE unsigned group_x() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE unsigned group_y() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE unsigned group_z() { return __builtin_amdgcn_workgroup_id_z(); }

// All threads of the group meet; what they wrote to SHARED memory is seen by all. The fences name
// local memory alone: a full workgroup fence would flush caches on gfx11 and gfx12.
DEVICE void group_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

// value as lane `from` of the wave holds it; every lane of the wave takes part.
DEVICE float shuffle(float value, unsigned from) {
  const int bits = __builtin_amdgcn_ds_bpermute(int(from * 4), __builtin_bit_cast(int, value));
  return __builtin_bit_cast(float, bits);
}
