// How the groups of attention_lone and its kin share the rows of a step, each of which is the only one of its
// sequence. All rows together have as many pages as the step has to read. They are cut into
// ranges of equal length, the last one of a row excepted, so that there are about as many ranges as the grid
// has groups for a KV head, whatever the lengths are. Group (kv_head, i) takes range i, counted through the
// rows in order.
//
// Before it includes this file the kernel declares pages_of() and kMinSplitPages.
#ifndef GRETA_VULKAN_ATTENTION_RANGES_BY_WORK_H
#define GRETA_VULKAN_ATTENTION_RANGES_BY_WORK_H
#extension GL_KHR_shader_subgroup_ballot : require
#include "kernels/vulkan/halves.h"
#include "kernels/vulkan/lanes.h"

const bool kMayStoreHalves = true;
void store_as_halves(uint at, vec4 y) { store_halves(halves_at(), at, y); }

uint first_range;  // of the token, among the ranges of the step

uint ranges_of(uint pages, uint each) { return (pages + each - 1) / each; }

// The sum over this lane and those before it.
uint sum_to_lane(uint value) {
  [[unroll]] for (uint d = 1; d < kLanes; d *= 2) {
    const uint before = subgroupShuffle(value, (gl_SubgroupInvocationID - d) % kLanes);
    if (gl_SubgroupInvocationID >= d) value += before;
  }
  return value;
}

// Pages of a range, so that no more ranges are needed than there are groups. A row has at most
// kMaxLoneSplits.
uint pages_each(StepState_address step, uint rows) {
  uint total = 0, most = 0;
  for (uint i = gl_SubgroupInvocationID; i < rows; i += kLanes) {
    const uint pages = pages_of(step.state.row[i], i);
    total += pages;
    most = max(most, pages);
  }
  [[unroll]] for (uint d = 1; d < kLanes; d *= 2) {
    total += subgroupShuffleXor(total, d);
    most = max(most, subgroupShuffleXor(most, d));
  }
  const uint each = ranges_of(total, gl_NumWorkGroups.y - rows);
  return max(max(each, ranges_of(most, kMaxLoneSplits)), kMinSplitPages);
}

bool find_share(StepState_address step, out Share share) {
  const uint rows = min(step.state.lone_count, gl_NumWorkGroups.y - 1);
  share.each = pages_each(step, rows);
  uint before = 0;
  for (uint first = 0; first < rows; first += kLanes) {
    const uint i = first + gl_SubgroupInvocationID;
    const uint ranges = i < rows ? ranges_of(pages_of(step.state.row[i], i), share.each) : 0;
    const uint end = before + sum_to_lane(ranges);
    const uvec4 behind = subgroupBallot(end > gl_WorkGroupID.y);
    if (any(notEqual(behind, uvec4(0)))) {
      const uint lane = subgroupBallotFindLSB(behind);
      share.t = first + lane;
      share.splits = subgroupShuffle(ranges, lane);
      first_range = subgroupShuffle(end - ranges, lane);
      share.split = gl_WorkGroupID.y - first_range;
      return true;
    }
    before = subgroupShuffle(end, kLanes - 1);
  }
  return false;
}
#endif
