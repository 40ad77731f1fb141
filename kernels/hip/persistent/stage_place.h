// What kernels/hip/place.h answers for a kernel, for one that is compiled as a body of decode_stages: which
// group it is, where its argument block lies and where its threads meet is said by decode_stages, no longer
// by the device.
#pragma once
#include "kernels/abi/persistent.h"
#include "kernels/hip/persistent/stage_memory.h"

#ifdef GRETA_PTX
#undef PTX_LANES
#define PTX_LANES __nvvm_activemask()  // others may have come to the end of the body
#endif

DEVICE uint stage_uniform(uint value) { return __builtin_amdgcn_readfirstlane(value); }

// The compiler knows nothing of the thread. Else it would make what follows from it once for all bodies, in
// registers that all of them would have to leave alone.
DEVICE uint thread_x() {
  uint thread = __builtin_amdgcn_workitem_id_x();
#ifndef GRETA_PTX
  asm volatile("" : "+v"(thread));
#endif
  return thread;
}
DEVICE uint group_x() { return stage_uniform(stage_context.group[0]); }
DEVICE uint group_y() { return stage_uniform(stage_context.group[1]); }
DEVICE uint group_z() { return stage_uniform(stage_context.group[2]); }

DEVICE const ARGUMENT void* argument_block() {
  const uint64_t at = stage_context.block;
  return (const ARGUMENT void*)((uint64_t)stage_uniform(uint(at >> 32)) << 32 | stage_uniform(uint(at)));
}

// The first `threads` threads of the group meet. The others do not take part, so the device's own barrier
// cannot be used.
#ifdef GRETA_PTX
DEVICE void meet_threads(uint threads) { __asm__ __volatile__("bar.sync 1, %0;" ::"r"(threads) : "memory"); }
#else
DEVICE void meet_threads(uint threads) {
  if (threads == kPersistentThreads) return __builtin_amdgcn_s_barrier();
  const uint waves = threads / kWave;
  if (waves == 1) return;
  uint* arrived = stage_arrived + __builtin_ctz(waves);
  uint come = 0;
  if (__builtin_amdgcn_workitem_id_x() % kWave == 0)
    come = __hip_atomic_fetch_add(arrived, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  come = stage_uniform(come);
  const uint all = come - come % waves + waves;
  const auto count = [&] {
    return stage_uniform(__hip_atomic_load(arrived, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP));
  };
  while (int(count() - all) < 0) __builtin_amdgcn_s_sleep(1);
}
#endif

// An array in the memory of all bodies, behind the first `offset` bytes.
template <class T, uint count, uint offset>
struct StageArray {
  static constexpr uint kEnd = offset + count * sizeof(T);
  static_assert(offset % alignof(T) == 0, "the array before it ends where this one cannot begin");
  static_assert(kEnd <= kStageBytes, "kStageBytes is too small");
  __attribute__((device, always_inline)) operator T*() const { return (T*)(stage_memory.bytes + offset); }
};
#define SHARED_ARRAY(type, name, count, offset) constexpr StageArray<type, count, offset> name = {}
#define END_OF(name) decltype(name)::kEnd
