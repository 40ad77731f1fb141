#include "tests/mock_hip/fiber.h"

#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#define MOCK_HIP_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MOCK_HIP_ASAN
#endif
#endif
#ifdef MOCK_HIP_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// Saves the registers that a call must keep, swaps stacks, and goes on in the other one. It jumps there,
// since processors foresee a jump to where the last one went, but expect a return to go where the call came
// from.
extern "C" void mock_hip_switch_stack(void** saved, void* next);
asm(R"(
        .text
        .type mock_hip_switch_stack, @function
mock_hip_switch_stack:
        pushq %rbp
        pushq %rbx
        pushq %r12
        pushq %r13
        pushq %r14
        pushq %r15
        movq %rsp, (%rdi)
        movq %rsi, %rsp
        popq %r15
        popq %r14
        popq %r13
        popq %r12
        popq %rbx
        popq %rbp
        popq %rcx
        jmpq *%rcx
        .size mock_hip_switch_stack, .-mock_hip_switch_stack
)");
#endif

namespace mock_hip {

#ifdef MOCK_HIP_ASAN
static thread_local Fiber* switched_from = nullptr;
#endif

void Fiber::start(uint8_t* stack, size_t stack_bytes, void (*function)()) {
  stack_ = stack;
  stack_bytes_ = stack_bytes;
#if defined(__x86_64__)
  // Six saved registers, the address that the first switch returns to, and a slot that keeps the stack
  // aligned as after a call.
  uint8_t* top = stack + stack_bytes;
  top -= reinterpret_cast<uintptr_t>(top) % 16;
  void** frame = reinterpret_cast<void**>(top) - 8;
  std::memset(frame, 0, 8 * sizeof(void*));
  frame[6] = reinterpret_cast<void*>(function);
  stack_pointer_ = frame;
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = stack_bytes;
  context_.uc_link = nullptr;
  makecontext(&context_, function, 0);
#endif
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
#ifdef MOCK_HIP_ASAN
  switched_from = &from;
  __sanitizer_start_switch_fiber(&from.sanitizer_state_, to.stack_, to.stack_bytes_);
#endif
#if defined(__x86_64__)
  mock_hip_switch_stack(&from.stack_pointer_, to.stack_pointer_);
#else
  swapcontext(&from.context_, &to.context_);
#endif
#ifdef MOCK_HIP_ASAN
  __sanitizer_finish_switch_fiber(from.sanitizer_state_, &switched_from->stack_,
                                  &switched_from->stack_bytes_);
#endif
}

void Fiber::arrive() {
#ifdef MOCK_HIP_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &switched_from->stack_, &switched_from->stack_bytes_);
#endif
}

}  // namespace mock_hip
