// decode_stages: the launches of a captured plan, one after the other
//   grid    as many groups as the device holds at once; all of them stay until the end
//   group   GROUP threads. The groups take the groups of a launch in turn; bodies with fewer threads leave
//           the others waiting. Where the plan has a barrier, all groups meet (grid.h)
//   shared  what the largest body takes, and what the groups' meetings take
//   moves   what the launches move, and the list
// The bodies are the kernels of the launches themselves, compiled once more (stage_place.h, stage_end.h). The
// argument block is PersistentBlock in kernels/abi/persistent.h.
#include "kernels/hip/persistent/grid.h"

static_assert(GROUP == kPersistentThreads);

#ifdef GRETA_EMULATED
static const char* const body_names[] = {
#define HIP_STAGE(name) #name,
#include "kernels/hip/stages.def"
};
DEVICE void run_body(uint body) { mock_hip::run_body(body_names[body]); }
DEVICE void set_group(const ARGUMENT PersistentLaunch& launch, uint i) {
  mock_hip::set_group(i % launch.groups_x, i / launch.groups_x % launch.groups_y,
                      i / launch.groups_x / launch.groups_y, launch.threads, launch.block);
}
DEVICE uint launches_of(const PersistentBlock& p) { return p.launches + mock_hip::further_stages(); }
DEVICE void begin_bodies() {}
DEVICE uint own_group() { return mock_hip::group_in_grid(); }
DEVICE const PersistentBlock& own_block() { return *(const PersistentBlock*)mock_hip::grid_block(); }
DEVICE void all_threads_meet() { mock_hip::all_threads_meet(); }
#define is_stuck(meeting) mock_hip::is_stuck(meeting)  // ordered by a test
#else
#include "kernels/hip/persistent/stage_memory.h"
enum Body : uint {
#define HIP_STAGE(name) kBody_##name,
#include "kernels/hip/stages.def"
};
#define HIP_STAGE(name) extern "C" __attribute__((device)) void stage_##name();
#include "kernels/hip/stages.def"
DEVICE void run_body(uint body) {
  switch (body) {
#define HIP_STAGE(name)  \
  case kBody_##name:     \
    stage_##name();      \
    break;
#include "kernels/hip/stages.def"
  }
}
DEVICE void set_group(const ARGUMENT PersistentLaunch& launch, uint i) {
  const uint x = launch.groups_x, y = launch.groups_y;
  auto block = (uint64_t)launch.block;
#ifndef GRETA_PTX
  asm volatile("" : "+s"(i), "+s"(block));  // no body's work is done outside of the loop over groups
#endif
  stage_context = {{i % x, i / x % y, i / x / y}, 0, block};
}
DEVICE uint launches_of(const ARGUMENT PersistentBlock& p) { return p.launches; }
DEVICE uint own_group() { return group_x(); }
DEVICE const ARGUMENT PersistentBlock& own_block() { return reloaded_block<PersistentBlock>(); }
DEVICE void begin_bodies() {
  if (thread_x() < sizeof(stage_arrived) / sizeof(stage_arrived[0])) stage_arrived[thread_x()] = 0;
}
DEVICE void all_threads_meet() { group_barrier(); }
#define is_stuck(meeting) false
#endif

// Two groups are to fit on a unit of CDNA, by their registers and by their shared memory.
#if defined(__GFX9__) && !defined(GRETA_EMULATED)
#define TWO_GROUPS __attribute__((amdgpu_waves_per_eu(4)))
#else
#define TWO_GROUPS
#endif

// A launch of the list. All that the loops keep over a body takes registers from it, so the argument block is
// loaded again for each.
DEVICE const ARGUMENT PersistentLaunch& launch_of_list(uint i) {
  return ((const ARGUMENT PersistentLaunch*)(uint64_t)own_block().list)[i];
}

// The groups of a launch that this group takes.
DEVICE void run_launch(uint launch) {
  const uint own = own_group(), begin = launch_of_list(launch).first;
  for (uint i = own >= begin ? own - begin : own + grid_groups() - begin; i < launch_of_list(launch).groups;
       i += grid_groups()) {
    all_threads_meet();  // nobody needs the shared memory of the group before
    const ARGUMENT PersistentLaunch& at = launch_of_list(launch);
    set_group(at, i);
    if (wave_index() * kWave < at.threads) run_body(at.body);
  }
}

// All groups meet before a launch, and see what the launches before it wrote. Returns whether they go on.
DEVICE bool all_groups_meet(uint meeting, uint launch) {
  const auto p = *(const PersistentBlock*)&own_block();
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  all_threads_meet();
  if (thread_x() == 0) grid_passes = meeting == 1 ? join(p) : meet(p, meeting, launch);
  all_threads_meet();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
  return grid_passes != 0;
}

TWO_GROUPS KERNEL(GROUP) void KERNEL_NAME(PersistentBlock p) {
  uint meeting = 1;
  begin_bodies();
  if (!all_groups_meet(meeting, 0)) return;
  for (uint i = 0; i < launches_of(own_block()); ++i) {
    if (launch_of_list(i).meets && !all_groups_meet(++meeting, i)) return;
    if (is_stuck(meeting)) return;
    run_launch(i);
  }
  all_threads_meet();
  if (thread_x() == 0) leave(p);
}
