// A fiber: a function with a stack of its own, that runs until it yields. Each lane of an emulated
// workgroup is one.
#pragma once
#include <cstdint>
#include <memory>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace mock_hip {

class Fiber {
 public:
  static constexpr uint64_t kStackBytes = 64 * 1024;

  Fiber();
  void start(void (*function)(void* argument), void* argument);  // runs at the first resume
  void resume();        // until it yields or ends; called outside of fibers
  static void yield();  // called inside one
  bool done() const { return done_; }

 private:
  void prepare_stack();
  void switch_in();
  void switch_out(bool for_good);
  static void entry();

  std::unique_ptr<uint8_t[]> stack_;
  void (*function_)(void*) = nullptr;
  void* argument_ = nullptr;
  bool done_ = true;
#if defined(__x86_64__)
  void* stack_pointer_ = nullptr;
  void* outer_stack_pointer_ = nullptr;
#else
  ucontext_t context_, outer_context_;
#endif
  // For AddressSanitizer, which wants to know of each switch.
  [[maybe_unused]] void* sanitizer_state_ = nullptr;
  [[maybe_unused]] void* outer_sanitizer_state_ = nullptr;
  [[maybe_unused]] const void* outer_stack_ = nullptr;
  [[maybe_unused]] size_t outer_stack_bytes_ = 0;
};

}  // namespace mock_hip
