#include "platform/threads/clock.h"

#include <time.h>

namespace greta {

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1000000000 + uint64_t(now.tv_nsec);
}

}  // namespace greta
