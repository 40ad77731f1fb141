// How far loading has come: the caller is told, and may stop it.
#pragma once
#include "platform/platform.h"

namespace greta {

struct LoadProgress {
  int (*call)(void* user, uint64_t done_bytes, uint64_t total_bytes) = nullptr;  // non-zero cancels
  void* user = nullptr;
};

constexpr uint64_t kMeterBytes = 16 << 20;  // between two calls, at most

// Bytes of the file that are done; asks the caller after each advance whether to go on.
struct LoadMeter {
  const LoadProgress& progress;
  uint64_t total, done;

  Status advance(uint64_t bytes) {
    done += bytes;
    if (!progress.call || progress.call(progress.user, done, total) == 0) return {};
    return fail(Code::Cancelled, "loading was cancelled after %llu of %llu bytes", (unsigned long long)done,
                (unsigned long long)total);
  }
};

}  // namespace greta
