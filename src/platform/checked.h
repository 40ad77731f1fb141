// Arithmetic that reports overflow, for numbers that come from a file or a caller.
#pragma once
#include <cstdint>

namespace greta {

// Returns false if the result does not fit; `out` is then unspecified.
[[nodiscard]] inline bool checked_add(uint64_t a, uint64_t b, uint64_t* out) {
  return !__builtin_add_overflow(a, b, out);
}
[[nodiscard]] inline bool checked_multiply(uint64_t a, uint64_t b, uint64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// Rounds `value` up to a multiple of `step` (step > 0). Callers keep value below 2^63.
constexpr uint64_t round_up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }
constexpr uint64_t divide_up(uint64_t value, uint64_t step) { return (value + step - 1) / step; }

}  // namespace greta
