// What the scan kernels share: where the operands of a head lie, and the parts of a group's work.
#pragma once
#include "kernels/cpu/runs.h"

namespace {

inline const float* key_of(const ScanBlock& b, uint32_t t, uint32_t h) {
  const uint32_t group = b.form & kScanTiled ? h % b.groups : h / (b.heads / b.groups);
  return (const float*)b.key + uint64_t(t) * b.key_stride + uint64_t(group) * b.key_width;
}

inline const float* query_of(const ScanBlock& b, uint32_t t, uint32_t h) {
  return key_of(b, t, h) + int32_t(b.query_at);
}

inline float skip_of(const ScanBlock& b, uint32_t h) {
  return scan_form(b.form) != kScanDelta && b.with_value ? ((const float*)b.with_value)[h] : 0.f;
}

// Neighbouring columns of one head, over the rows of a run.
struct ScanPart {
  StepRun run;
  uint32_t column, count;  // the first one, of all heads
  uint32_t head;
  float* state;  // of the first column; the next value of the key is value_width floats further
};

// Calls work(part) for all parts of the groups, whose states are zeros where a sequence begins.
template <class Work>
inline void for_each_scan(const ScanBlock& b, uint32_t tile, uint32_t first_group, uint32_t group_count,
                          const Work& work) {
  const StepRuns* runs = runs_of(b.runs);
  const uint32_t columns = b.heads * b.value_width;
  for (uint32_t group = first_group; group < first_group + group_count; ++group) {
    const uint32_t r = group % b.most_runs, first = group / b.most_runs * tile;
    if (r >= runs->count) continue;
    const uint32_t end = columns - first < tile ? columns : first + tile;
    ScanPart part = {runs->run[r], first, 0, 0, nullptr};
    for (; part.column < end; part.column += part.count) {
      part.head = part.column / b.value_width;
      const uint32_t at = part.column % b.value_width;
      part.count = end - part.column < b.value_width - at ? end - part.column : b.value_width - at;
      part.state = (float*)b.state + uint64_t(part.run.state) * b.state_stride +
                   uint64_t(part.head) * b.key_width * b.value_width + at;
      if (begins_sequence(step_of(b.step), part.run))
        for (uint32_t j = 0; j < b.key_width; ++j)
          for (uint32_t i = 0; i < part.count; ++i) part.state[uint64_t(j) * b.value_width + i] = 0;
      work(part);
    }
  }
}

}  // namespace
