#pragma once
#include <cstdint>

namespace greta {
uint64_t now_ns();  // monotonic
}  // namespace greta
