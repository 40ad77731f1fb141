// Counts the bytes that loading a model has read.
#pragma once
#include "gguf/gguf.h"

namespace greta {

constexpr uint64_t kMeterBytes = 16 << 20;  // the most bytes between two calls of the caller's function

// Asks the caller after each advance whether to go on.
struct LoadMeter {
  const Progress& progress;
  uint64_t total, done;            // bytes of the file
  const Source* source = nullptr;  // if its mapped pages are read next, its size is checked again

  Status advance(uint64_t bytes) {
    done += bytes;
    if (progress.goes_on(done, total)) return source ? source->check_mapped() : Status{};
    return fail(Code::Cancelled, "loading was cancelled after %llu of %llu bytes", (unsigned long long)done,
                (unsigned long long)total);
  }
};

}  // namespace greta
