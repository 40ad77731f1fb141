// A fiber: a function with a stack of its own, that runs until it switches to another. Each lane of an
// emulated workgroup is one. A fiber without a stack stands for the thread that switches to the others.
#pragma once
#include <cstddef>
#include <cstdint>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace mock_hip {

class Fiber {
 public:
  // Sets up a fiber that runs `function` at the first switch to it. The function calls arrive() first, and
  // never returns.
  void start(uint8_t* stack, size_t stack_bytes, void (*function)());
  // Leaves the fiber `from`, which runs now, until something switches back to it.
  static void switch_to(Fiber& from, Fiber& to);
  static void arrive();

 private:
#if defined(__x86_64__)
  void* stack_pointer_ = nullptr;
#else
  ucontext_t context_;
#endif
  // For AddressSanitizer, which wants to know of each switch.
  [[maybe_unused]] void* sanitizer_state_ = nullptr;
  [[maybe_unused]] const void* stack_ = nullptr;
  [[maybe_unused]] size_t stack_bytes_ = 0;
};

}  // namespace mock_hip
