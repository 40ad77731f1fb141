// How the groups of decode_stages meet. One thread of each group counts it at its die, the last group of a
// die counts the die, and the last die decides that the meeting is over. So most accesses stay on the die. A
// group that has waited too long decides that the meeting failed: then no group passes it, and all end.
#pragma once
#include "kernels/abi/persistent.h"
#include "kernels/hip/device.h"

#ifdef GRETA_EMULATED
#define grid_groups() mock_hip::resident_groups()
#define die_of_group() mock_hip::die_of_group()
#define pause_poll() mock_hip::let_others_run()
#define most_polls(p) mock_hip::most_polls((p).polls)
#define loses_arrival(meeting) mock_hip::loses_arrival(meeting)  // ordered by a test
#elif defined(GRETA_PTX)
DEVICE uint grid_groups() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE uint die_of_group() { return 0; }
DEVICE void pause_poll() {}
#else
DEVICE uint grid_groups() { return __builtin_amdgcn_grid_size_x() / GROUP; }
DEVICE uint die_of_group() {
#if defined(__gfx942__) || defined(__gfx950__) || defined(__gfx9_4_generic__)
  constexpr int kDieRegister = 20, kBits = 4;  // HW_REG_XCC_ID
  return __builtin_amdgcn_s_getreg(kDieRegister | (kBits - 1) << 11);
#else
  return 0;
#endif
}
DEVICE void pause_poll() { __builtin_amdgcn_s_sleep(1); }
#endif

#ifndef GRETA_EMULATED
#define most_polls(p) (p).polls
#define loses_arrival(meeting) false
#endif

SHARED uint grid_members, grid_dies;  // groups of this die, and dies that have groups
SHARED uint grid_passes;              // whether the group goes on

DEVICE GLOBAL uint* counter(const PersistentBlock& p, uint line) { return p.state + line * kPersistentLine; }
DEVICE uint read_counter(const PersistentBlock& p, uint line) {
  return __hip_atomic_load(counter(p, line), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
DEVICE void write_counter(const PersistentBlock& p, uint line, uint value) {
  __hip_atomic_store(counter(p, line), value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Ends meeting `meeting` as passed or failed. It does nothing where another group has ended it.
DEVICE void decide(const PersistentBlock& p, uint meeting, uint how) {
  uint before = meeting - 1;
  (void)__hip_atomic_compare_exchange_strong(counter(p, kGridDecided), &before, how, __ATOMIC_RELAXED,
                                             __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Waits until the word at `line` says that the meeting is over. Returns whether the group passes it.
DEVICE bool await(const PersistentBlock& p, uint line, uint meeting, uint launch) {
  constexpr uint kLooks = 64;  // from one look at what was decided to the next
  for (uint poll = 1; poll <= most_polls(p); ++poll) {
    if (read_counter(p, line) - meeting < kGridFailed / 2) return true;
    if (poll % kLooks == 0 && read_counter(p, kGridDecided) == kGridFailed) return false;
    pause_poll();
  }
  decide(p, meeting, kGridFailed);
  if (read_counter(p, kGridDecided) != kGridFailed) return true;
  __hip_atomic_store(p.report, launch + 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  return false;
}

// What other groups wrote before they were counted is seen by whoever this one counts for.
DEVICE void order_device() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");
}

// The first meeting, at which groups learn how many there are on their die. One thread calls it.
DEVICE bool join(const PersistentBlock& p) {
  const uint die = die_of_group();
  atomic_add(counter(p, kGridMembers + die), 1);
  order_device();
  if (atomic_add(counter(p, kGridJoined), 1) + 1 == grid_groups()) decide(p, 1, 1);
  if (!await(p, kGridDecided, 1, 0)) return false;
  order_device();
  uint dies = 0;
  for (uint i = 0; i < kPersistentDies; ++i) dies += read_counter(p, kGridMembers + i) != 0;
  grid_members = read_counter(p, kGridMembers + die);
  grid_dies = dies;
  return true;
}

// Meeting `meeting`, from 2 on, before launch `launch`. One thread calls it.
DEVICE bool meet(const PersistentBlock& p, uint meeting, uint launch) {
  const uint die = die_of_group(), before = meeting - 1;
  if (!loses_arrival(meeting) && atomic_add(counter(p, kGridArrived + die), 1) + 1 == grid_members * before) {
    order_device();
    if (atomic_add(counter(p, kGridDies), 1) + 1 == grid_dies * before) {
      order_device();
      decide(p, meeting, meeting);
      if (read_counter(p, kGridDecided) == meeting)
        for (uint i = 0; i < kPersistentDies; ++i) write_counter(p, kGridPassed + i, meeting);
    }
  }
  return await(p, kGridPassed + die, meeting, launch);
}

// The last group to end leaves all counters 0, and says so to the host. One thread calls it.
DEVICE void leave(const PersistentBlock& p) {
  if (atomic_add(counter(p, kGridLeft), 1) + 1 != grid_groups()) return;
  for (uint i = 0; i < kGridLines; ++i) write_counter(p, i, 0);
  __hip_atomic_store(p.report, 0u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
