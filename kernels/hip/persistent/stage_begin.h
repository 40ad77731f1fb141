// In front of a kernel's source that is compiled as a body of decode_stages: which group it is, where its
// argument block lies and where its threads meet is said by decode_stages, no longer by the device.
#pragma once
#define GRETA_STAGE

#ifdef GRETA_PTX
#undef PTX_LANES
#define PTX_LANES __nvvm_activemask()  // others may have come to the end of the body
#define STAGE_SHARED __attribute__((weak, __shared__))
#define STAGE_ARGUMENT
#else
#define STAGE_SHARED __attribute__((weak, __shared__))
#define STAGE_ARGUMENT __attribute__((address_space(4)))
#endif
#define STAGE_DEVICE static inline __attribute__((device, always_inline))

// What a body knows of its launch. All bodies share it. Every thread writes it, with the same values, so that
// the compiler knows them without a load.
struct StageContext {
  unsigned group[3];
  unsigned unused;
  unsigned long block;
};
STAGE_SHARED StageContext stage_context;
// Waves that have come to a barrier of a body with fewer threads than decode_stages, for each count of waves.
STAGE_SHARED unsigned stage_arrived[8];


// Memory that bodies share with each other, where a kernel of its own would have SHARED arrays: it is as
// large as the largest need and not as their sum.
constexpr unsigned kStageBytes = 19456;
struct alignas(16) StageMemory {
  unsigned char bytes[kStageBytes];
};
STAGE_SHARED StageMemory stage_memory;
#define STAGE_MEMORY(type, at) ((type*)(stage_memory.bytes + (at)))

STAGE_DEVICE unsigned stage_uniform(unsigned value) { return __builtin_amdgcn_readfirstlane(value); }

// The thread, of which the compiler knows nothing. Else it would make what follows from it once for all
// bodies, in registers that all of them would have to leave alone.
STAGE_DEVICE unsigned stage_thread() {
  unsigned thread = __builtin_amdgcn_workitem_id_x();
#ifndef GRETA_PTX
  __asm__ __volatile__("" : "+v"(thread));
#endif
  return thread;
}

STAGE_DEVICE const STAGE_ARGUMENT void* stage_block() {
  const unsigned long at = stage_context.block;
  return (const STAGE_ARGUMENT void*)((unsigned long)stage_uniform(unsigned(at >> 32)) << 32 |
                                      stage_uniform(unsigned(at)));
}

// The first `threads` threads of the group meet. The others do not take part, so the device's own barrier
// cannot be used.
#ifdef GRETA_PTX
STAGE_DEVICE void stage_barrier(unsigned threads) {
  __asm__ __volatile__("bar.sync 1, %0;" ::"r"(threads) : "memory");
}
#else
#ifdef __GFX9__
#define STAGE_WAVE 64
#else
#define STAGE_WAVE 32
#endif
STAGE_DEVICE void stage_barrier(unsigned threads) {
  if (threads == 512) return __builtin_amdgcn_s_barrier();
  const unsigned waves = threads / STAGE_WAVE;
  if (waves == 1) return;
  unsigned* arrived = stage_arrived + __builtin_ctz(waves);
  unsigned come = 0;
  if (__builtin_amdgcn_workitem_id_x() % STAGE_WAVE == 0)
    come = __hip_atomic_fetch_add(arrived, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  come = stage_uniform(come);
  const unsigned all = come - come % waves + waves;
  const auto count = [&] {
    return stage_uniform(__hip_atomic_load(arrived, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP));
  };
  while (int(count() - all) < 0) __builtin_amdgcn_s_sleep(1);
}
#endif

#undef __builtin_amdgcn_workitem_id_x
#undef __builtin_amdgcn_workgroup_id_x
#undef __builtin_amdgcn_workgroup_id_y
#undef __builtin_amdgcn_workgroup_id_z
#undef __builtin_amdgcn_kernarg_segment_ptr
#undef __builtin_amdgcn_s_barrier
#define __builtin_amdgcn_workitem_id_x() stage_thread()
#define __builtin_amdgcn_workgroup_id_x() stage_uniform(stage_context.group[0])
#define __builtin_amdgcn_workgroup_id_y() stage_uniform(stage_context.group[1])
#define __builtin_amdgcn_workgroup_id_z() stage_uniform(stage_context.group[2])
#define __builtin_amdgcn_kernarg_segment_ptr() stage_block()
#define __builtin_amdgcn_s_barrier() stage_barrier(group_threads())
