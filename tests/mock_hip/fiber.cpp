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
// Saves the registers that a call must keep, swaps stacks, and returns into the other one.
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
        ret
        .size mock_hip_switch_stack, .-mock_hip_switch_stack
)");
#endif

namespace mock_hip {

static thread_local Fiber* current = nullptr;

Fiber::Fiber() : stack_(new uint8_t[kStackBytes]) {}

void Fiber::start(void (*function)(void*), void* argument) {
  function_ = function;
  argument_ = argument;
  done_ = false;
  sanitizer_state_ = nullptr;
  prepare_stack();
}

void Fiber::resume() {
  current = this;
#ifdef MOCK_HIP_ASAN
  __sanitizer_start_switch_fiber(&outer_sanitizer_state_, stack_.get(), kStackBytes);
#endif
  switch_in();
#ifdef MOCK_HIP_ASAN
  __sanitizer_finish_switch_fiber(outer_sanitizer_state_, nullptr, nullptr);
#endif
  current = nullptr;
}

void Fiber::yield() { current->switch_out(false); }

void Fiber::entry() {
  Fiber* self = current;
#ifdef MOCK_HIP_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &self->outer_stack_, &self->outer_stack_bytes_);
#endif
  self->function_(self->argument_);
  self->done_ = true;
  self->switch_out(true);
}

#if defined(__x86_64__)

void Fiber::prepare_stack() {
  // Six saved registers, the address that the first switch returns to, and a slot that keeps the
  // stack aligned as after a call.
  uint8_t* top = stack_.get() + kStackBytes;
  top -= reinterpret_cast<uintptr_t>(top) % 16;
  void** frame = reinterpret_cast<void**>(top) - 8;
  std::memset(frame, 0, 8 * sizeof(void*));
  frame[6] = reinterpret_cast<void*>(&Fiber::entry);
  stack_pointer_ = frame;
}

void Fiber::switch_in() { mock_hip_switch_stack(&outer_stack_pointer_, stack_pointer_); }

#else

void Fiber::prepare_stack() {
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_.get();
  context_.uc_stack.ss_size = kStackBytes;
  context_.uc_link = nullptr;
  makecontext(&context_, &Fiber::entry, 0);
}

void Fiber::switch_in() { swapcontext(&outer_context_, &context_); }

#endif

void Fiber::switch_out([[maybe_unused]] bool for_good) {
#ifdef MOCK_HIP_ASAN
  __sanitizer_start_switch_fiber(for_good ? nullptr : &sanitizer_state_, outer_stack_, outer_stack_bytes_);
#endif
#if defined(__x86_64__)
  mock_hip_switch_stack(&stack_pointer_, outer_stack_pointer_);
#else
  swapcontext(&context_, &outer_context_);
#endif
#ifdef MOCK_HIP_ASAN
  __sanitizer_finish_switch_fiber(sanitizer_state_, &outer_stack_, &outer_stack_bytes_);
#endif
}

}  // namespace mock_hip
