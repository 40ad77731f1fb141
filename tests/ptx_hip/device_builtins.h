// Included in front of a HIP kernel's own source when clang compiles it to PTX, for a run on an NVIDIA GPU:
// gives the AMD builtins that kernels/hip/device.h uses for waves of 32 lanes their meaning there. What runs
// is a stand-in: it shows races and faults of truly parallel lanes, and says nothing of AMD's hardware.
#pragma once

#define GRETA_PTX

// The lanes that take part in an exchange: all that have not ended. The lanes of a body of decode_stages do
// not end, so kernels/hip/persistent/stage_place.h has another word for them.
#define PTX_LANES ~0u

#define __builtin_amdgcn_workitem_id_x() __nvvm_read_ptx_sreg_tid_x()
#define __builtin_amdgcn_workgroup_id_x() __nvvm_read_ptx_sreg_ctaid_x()
#define __builtin_amdgcn_workgroup_id_y() __nvvm_read_ptx_sreg_ctaid_y()
#define __builtin_amdgcn_workgroup_id_z() __nvvm_read_ptx_sreg_ctaid_z()
#define __builtin_amdgcn_grid_size_x() (__nvvm_read_ptx_sreg_nctaid_x() * GROUP)
#define __builtin_amdgcn_grid_size_y() __nvvm_read_ptx_sreg_nctaid_y()  // groups have one thread along y
#define __builtin_amdgcn_s_barrier() meet_group_of_ptx()
#define __builtin_amdgcn_readfirstlane(value) (value)  // also where only some lanes come
#define __builtin_amdgcn_readlane(value, lane) __nvvm_shfl_sync_idx_i32(PTX_LANES, value, lane, 31)
#define __builtin_amdgcn_ds_bpermute(bytes, value) \
  __nvvm_shfl_sync_idx_i32(PTX_LANES, value, ((bytes) / 4) & 31, 31)
#define __builtin_amdgcn_permlanex16(old, value, low, high, all, bound) \
  __nvvm_shfl_sync_bfly_i32(PTX_LANES, value, 16, 31)
#define __builtin_amdgcn_sdot4(a, b, sum, clamp) dot_of_bytes(a, b, sum)
#define __builtin_amdgcn_sudot4(signed_a, a, signed_b, b, sum, clamp) dot_of_bytes(a, b, sum)

#define PTX_INLINE static inline __attribute__((device, always_inline))

PTX_INLINE void meet_group_of_ptx() { __asm__ __volatile__("bar.sync 0;" ::: "memory"); }

// A fence orders memory of a group or of the device; the name of an address space does not matter here.
#define __builtin_amdgcn_fence(order, scope, ...) fence_of_ptx(scope)
PTX_INLINE void fence_of_ptx(const char* scope) {
  if (scope[0] == 'w')
    __nvvm_membar_cta();
  else
    __nvvm_membar_gl();
}

// Data-parallel primitives: the operand of another lane of the row of 16, by the numbers that device.h uses.
#define __builtin_amdgcn_update_dpp(old, value, order, rows, banks, bound) \
  lane_of_row<order>(value, PTX_LANES)
template <int order>
PTX_INLINE int lane_of_row(int value, unsigned lanes) {
  static_assert(order == 0xb1 || order == 0x4e || order == 0x141 || order == 0x140);
  constexpr int mask = order == 0xb1 ? 1 : order == 0x4e ? 2 : order == 0x141 ? 7 : 15;
  return __nvvm_shfl_sync_bfly_i32(lanes, value, mask, 31);
}

PTX_INLINE int dot_of_bytes(int a, int b, int sum) {
  int result;
  __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}

#define __HIP_MEMORY_SCOPE_AGENT 0
#define __HIP_MEMORY_SCOPE_SYSTEM 1
#define __hip_atomic_fetch_add(at, value, order, scope) __atomic_fetch_add(at, value, order)
#define __hip_atomic_load(at, order, scope) __atomic_load_n(at, order)
#define __hip_atomic_store(at, value, order, scope) __atomic_store_n(at, value, order)
#define __hip_atomic_compare_exchange_strong(at, expected, value, order, other, scope) \
  __atomic_compare_exchange_n(at, expected, value, false, order, other)

// The argument block is the parameter of the kernel that this is inlined into.
#define PTX_TEXT_OF(name) #name
#define PTX_TEXT(name) PTX_TEXT_OF(name)
#define __builtin_amdgcn_kernarg_segment_ptr()                                                \
  ([]() {                                                                                     \
    const void* block;                                                                        \
    __asm__("{ .reg .b64 parameter; mov.b64 parameter, " PTX_TEXT(KERNEL_NAME) "_param_0; " \
            "cvta.param.u64 %0, parameter; }"                                                 \
            : "=l"(block)); \
    return block;                                                                             \
  }())

// Bytes of two words: 0 to 3 of `low`, 4 to 7 of `high`.
PTX_INLINE unsigned bytes_of_words(unsigned high, unsigned low, unsigned from) {
  const unsigned halves = (from & 7) | (from >> 4 & 0x70) | (from >> 8 & 0x700) | (from >> 12 & 0x7000);
  return __nvvm_prmt(low, high, halves);
}
#define __builtin_amdgcn_perm(high, low, from) bytes_of_words(high, low, from)
#define __builtin_amdgcn_exp2f(value) __nvvm_ex2_approx_f(value)
#define __builtin_amdgcn_sched_barrier(mask) ((void)0)

// The kernels' own asm statements are empty. They keep clang from moving code among AMD's registers.
#define asm
#define volatile(...)
