// The progress of long work. Whoever asked for the work is told now and then, and may stop it.
#pragma once
#include <cstdint>

#include "platform/failure/callback.h"

namespace greta {

struct Progress {
  int (*call)(void* user, uint64_t done, uint64_t total) = nullptr;  // returning non-zero cancels the work
  void* user = nullptr;

  bool goes_on(uint64_t done, uint64_t total) const {
    return !call || call_back("progress", [&] { return call(user, done, total); }) == 0;
  }
};

}  // namespace greta
