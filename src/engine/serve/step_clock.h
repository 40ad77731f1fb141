// How long steps take, by their number of rows, as measured while they run. The cut of long prompts follows
// from it.
#pragma once
#include "engine/executor/transformer.h"

namespace greta {

class StepClock {
 public:
  void note(uint32_t rows, uint64_t ns) {
    if (rows > kMaxStepTokens) return;  // a pass of several pieces
    Bucket& bucket = buckets_[index(rows)];
    if (!bucket.seen++) return;  // the first step of a size also makes its plan
    const bool anew = bucket.ns == 0 || bucket.refused;
    bucket.ns = anew ? ns : bucket.ns + int64_t(ns - bucket.ns) / kMemory;
    bucket.refused = false;
  }

  // The most rows, up to `most`, of a step that should end within `ns`. A size that never ran is taken to
  // last twice as long as half of it. One that is refused is thought of as slow a little less each time, so
  // that it is tried again; then it is measured anew, so that fewer than one step in 100 is twice too long.
  uint32_t rows_within(uint64_t ns, uint32_t most) {
    uint64_t guess = 0;
    uint32_t rows = 1;
    for (uint32_t i = 0; i < kCount && kTokenBuckets[i] <= most; ++i) {
      guess = buckets_[i].ns ? buckets_[i].ns : 2 * guess;
      if (guess > ns) {
        buckets_[i].ns -= buckets_[i].ns / kForgetting;
        buckets_[i].refused = true;
        break;
      }
      rows = kTokenBuckets[i];
    }
    return rows;
  }

 private:
  static constexpr uint32_t kCount = sizeof kTokenBuckets / sizeof *kTokenBuckets;
  static constexpr int64_t kMemory = 8;         // steps over which a measurement is averaged
  static constexpr uint64_t kForgetting = 256;  // refusals until most of a measurement is forgotten
  static uint32_t index(uint32_t rows) {
    uint32_t i = 0;
    while (kTokenBuckets[i] < rows) ++i;
    return i;
  }
  struct Bucket {
    uint64_t ns = 0, seen = 0;
    bool refused = false;  // since it ran last
  };
  Bucket buckets_[kCount];
};

}  // namespace greta
