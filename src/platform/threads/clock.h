#pragma once
#include <cstdint>

namespace greta {
uint64_t now_ns();  // nanoseconds of a monotonic clock
}  // namespace greta
