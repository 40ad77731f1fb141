// How far loading has come.
#pragma once
#include "gguf/gguf.h"

namespace greta {

constexpr uint64_t kMeterBytes = 16 << 20;  // between two calls, at most

// Bytes of the file that are done; asks the caller after each advance whether to go on.
struct LoadMeter {
  const Progress& progress;
  uint64_t total, done;
  const Source* source = nullptr;  // whose mapped pages are read next

  Status advance(uint64_t bytes) {
    done += bytes;
    if (progress.goes_on(done, total)) return source ? source->check_mapped() : Status{};
    return fail(Code::Cancelled, "loading was cancelled after %llu of %llu bytes", (unsigned long long)done,
                (unsigned long long)total);
  }
};

}  // namespace greta
