// What every HIP kernel may use. Kernels are freestanding: no HIP headers, no host code, no C library.
// Helpers are static or in an anonymous namespace, since the types of a source are linked into one code
// object. tests/mock_hip compiles the same source for the host (GRETA_EMULATED) and gives the builtins used
// here a body there; where a body of its own is faster, both stand here side by side.
//
// The build puts in front of a kernel's source: KERNEL_NAME, GROUP (threads of a group), BLOCK (the argument
// block), THREADS (the block's field with the threads of a group, where they vary), for a weight its decode
// header (kernels/hip/glsl.h), and GRETA_STAGE where the kernel is compiled as a body of decode_stages.
#pragma once
#include "kernels/abi/ops.h"

typedef unsigned short uint16_t;
typedef unsigned long uint64_t;

#ifdef GRETA_EMULATED
#define KERNEL(threads) static
#define KERNEL_OF(least, most) static
#define DEVICE static inline
#define SHARED static thread_local
#define GLOBAL
#define ARGUMENT
#elif defined(GRETA_PTX)  // tests/ptx_hip
#ifdef GRETA_STAGE
#define KERNEL_OF(least, most) static inline __attribute__((device, always_inline))
#else
#define KERNEL_OF(least, most) extern "C" __attribute__((global, launch_bounds(most)))
#endif
#define KERNEL(threads) KERNEL_OF(threads, threads)
#define DEVICE static inline __attribute__((device, always_inline))
#define SHARED static __attribute__((__shared__))
#define GLOBAL __attribute__((address_space(1)))
#define ARGUMENT
#else
#ifdef GRETA_STAGE
#define KERNEL_OF(least, most) static inline __attribute__((device, always_inline))
#else
// launch_bounds is ignored by clang for amdgcn; this attribute is not.
#define KERNEL_OF(least, most) extern "C" __attribute__((global, amdgpu_flat_work_group_size(least, most)))
#endif
#define KERNEL(threads) KERNEL_OF(threads, threads)
#define DEVICE static inline __attribute__((device, always_inline))
#define SHARED static __attribute__((__shared__))
#define GLOBAL __attribute__((address_space(1)))    // memory of the device
#define ARGUMENT __attribute__((address_space(4)))  // the argument block
#endif

#ifdef __GFX9__
constexpr uint kWave = 64;  // lanes in lockstep: CDNA
#else
constexpr uint kWave = 32;  // RDNA
#endif

#ifdef GRETA_STAGE
#include "kernels/hip/persistent/stage_place.h"
#else
#include "kernels/hip/place.h"
#endif

DEVICE uint lane() { return thread_x() % kWave; }

// The wave's index in its group, which the compiler knows to be the same in all lanes.
DEVICE uint wave_index() {
#ifdef GRETA_EMULATED
  return thread_x() / kWave;
#else
  return __builtin_amdgcn_readfirstlane(thread_x() / kWave);
#endif
}

// A field of the argument block, for functions that are not given the block.
#define BLOCK_FIELD(field) (((const ARGUMENT BLOCK*)argument_block())->field)

// The argument block, for a loop whose body is to load anew what it needs of it. Otherwise all that the
// compiler makes of the fields stays in registers over the loop, and they spill.
template <class Block>
DEVICE const ARGUMENT Block& reloaded_block() {
  auto block = (const ARGUMENT Block*)argument_block();
#ifndef GRETA_EMULATED
  asm volatile("" : "+s"(block));
#endif
  return *block;
}

// The threads of a group.
#ifdef THREADS
#define group_threads() BLOCK_FIELD(THREADS)
#else
#define group_threads() uint(GROUP)
#endif

// All threads of the group meet; what they wrote to SHARED memory is seen by all. The fences name local
// memory alone: a full workgroup fence would flush caches on gfx11 and gfx12.
DEVICE void group_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  meet_threads(group_threads());
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}

// ---- Memory. An address is a multiple of T's bytes. ----

template <class T>
DEVICE T load(uint64_t address) {
  return *(const GLOBAL T*)address;
}
template <class T, class From>
DEVICE T load(const GLOBAL From* address) {
  return *(const GLOBAL T*)address;
}

// For what is read once, such as weights: it does not push out of the caches what is read again.
template <class T>
DEVICE T load_streamed(uint64_t address) {
  return __builtin_nontemporal_load((const GLOBAL T*)address);
}
template <class T, class From>
DEVICE T load_streamed(const GLOBAL From* address) {
  return __builtin_nontemporal_load((const GLOBAL T*)address);
}

// Adds for all groups of the device, and returns what was there. It orders no other memory (group_ticket.h
// does).
DEVICE uint atomic_add(GLOBAL uint* at, uint value) {
  return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// ---- Waves. All lanes of a wave take part in each of these. Values are of 4 bytes. ----

// value as lane `from` of the wave holds it.
template <class T>
DEVICE T shuffle(T value, uint from) {
  return __builtin_bit_cast(T, __builtin_amdgcn_ds_bpermute(int(from * 4), __builtin_bit_cast(int, value)));
}

// value as the lane with the index `from` holds it, which is the same in all lanes: a scalar.
template <class T>
DEVICE T broadcast(T value, uint from) {
  return __builtin_bit_cast(T, __builtin_amdgcn_readlane(__builtin_bit_cast(int, value), int(from)));
}

struct AddLanes {
  template <class T>
  DEVICE T of(T a, T b) {
    return a + b;
  }
};
struct MaxLanes {
  DEVICE float of(float a, float b) { return __builtin_fmaxf(a, b); }
  DEVICE int of(int a, int b) { return a > b ? a : b; }
  DEVICE uint of(uint a, uint b) { return a > b ? a : b; }
};
struct MinLanes {
  DEVICE float of(float a, float b) { return __builtin_fminf(a, b); }
  DEVICE int of(int a, int b) { return a < b ? a : b; }
  DEVICE uint of(uint a, uint b) { return a < b ? a : b; }
};

// The results of all lanes, joined in pairs: of neighbours, then of neighbouring pairs, and so on. So the
// order is the same for each target, and all lanes get the same bits.
#ifdef GRETA_EMULATED
template <class Join, class T>
DEVICE T wave_join(T value) {
  T joined;
  mock_hip::meet_wave(mock_hip::join_wave<Join, T>, &value, &joined);
  return joined;
}
template <class T>
DEVICE T shuffle_xor(T value, uint mask) {
  return shuffle(value, lane() ^ mask);
}
#else
// Data-parallel primitives: an operand as another lane of the row of 16 holds it, in the same instruction.
enum RowOrder { kXor1 = 0xb1, kXor2 = 0x4e, kMirrorEight = 0x141, kMirrorRow = 0x140 };
template <RowOrder order, class T>
DEVICE T in_row(T value) {
  const int bits = __builtin_bit_cast(int, value);
  return __builtin_bit_cast(T, __builtin_amdgcn_update_dpp(bits, bits, order, 15, 15, true));
}

template <class Join, class T>
DEVICE T wave_join(T value) {
  value = Join::of(value, in_row<kXor1>(value));
  value = Join::of(value, in_row<kXor2>(value));
  value = Join::of(value, in_row<kMirrorEight>(value));
  value = Join::of(value, in_row<kMirrorRow>(value));
#ifdef __GFX9__
  // Rows 1 and 3 take in the row before, then row 3 takes in row 1; the other rows keep what they have.
  const int rows = __builtin_bit_cast(int, value);
  const T pair =
      Join::of(value, __builtin_bit_cast(T, __builtin_amdgcn_update_dpp(0, rows, 0x142, 10, 15, false)));
  const int pairs = __builtin_bit_cast(int, pair);
  const T all =
      Join::of(pair, __builtin_bit_cast(T, __builtin_amdgcn_update_dpp(0, pairs, 0x143, 12, 15, false)));
  return broadcast(all, 63);
#else
  const int row = __builtin_bit_cast(int, value);
  const int other = __builtin_amdgcn_permlanex16(row, row, 0x76543210, 0xfedcba98, true, true);
  return Join::of(value, __builtin_bit_cast(T, other));
#endif
}

template <class T>
DEVICE T shuffle_xor(T value, uint mask) {
  if (mask == 1) return in_row<kXor1>(value);
  if (mask == 2) return in_row<kXor2>(value);
  return shuffle(value, lane() ^ mask);
}
#endif

template <class T>
DEVICE T wave_sum(T value) {
  return wave_join<AddLanes>(value);
}
template <class T>
DEVICE T wave_max(T value) {
  return wave_join<MaxLanes>(value);
}
template <class T>
DEVICE T wave_min(T value) {
  return wave_join<MinLanes>(value);
}

// sum + the products of the four signed bytes of a with those of b.
DEVICE int dot4(int a, int b, int sum) {
#if defined(__GFX11__) || defined(__GFX12__)
  return __builtin_amdgcn_sudot4(true, a, true, b, sum, false);
#else
  return __builtin_amdgcn_sdot4(a, b, sum, false);
#endif
}

// Bytes of two words, one for each byte of `from`: 0 to 3 of `low`, 4 to 7 of `high`.
DEVICE uint pick_bytes(uint low, uint high, uint from) {
#ifdef GRETA_EMULATED
  const uint64_t words = uint64_t(high) << 32 | low;
  uint bytes = 0;
  for (uint i = 0; i < 32; i += 8) bytes |= (words >> (from >> i & 7) * 8 & 255) << i;
  return bytes;
#else
  return __builtin_amdgcn_perm(high, low, from);
#endif
}

// Four bytes of a table of 16, which the low halves of the bytes of q choose.
DEVICE uint look_up_bytes(const uint (&table)[4], uint q) {
  const uint low = q & 0x07070707, half = (q >> 1 & 0x04040404) | 0x03020100;
  return pick_bytes(pick_bytes(table[0], table[1], low), pick_bytes(table[2], table[3], low), half);
}
