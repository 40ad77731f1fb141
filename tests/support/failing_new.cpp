#include "support/failing_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

struct Armed {
  bool on = false;
  uint64_t count = 0, fail_at = 0;
};
thread_local Armed armed;
std::atomic<uint64_t> live{0};

void* allocate(size_t bytes, size_t alignment) noexcept {
  if (armed.on && ++armed.count == armed.fail_at) return nullptr;
  if (!bytes) bytes = 1;
  void* const pointer = alignment > alignof(std::max_align_t)
                            ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                            : std::malloc(bytes);
  if (pointer) ++live;
  return pointer;
}

void* allocate_or_throw(size_t bytes, size_t alignment = 0) {
  void* const pointer = allocate(bytes, alignment);
  if (!pointer) throw std::bad_alloc();
  return pointer;
}

void release(void* pointer) noexcept {
  if (pointer) --live;
  std::free(pointer);
}

}  // namespace

namespace greta::test {

FailingNew::FailingNew(uint64_t fail_at) : fail_at_(fail_at) { armed = {true, 0, fail_at}; }
FailingNew::~FailingNew() { armed = {}; }
uint64_t FailingNew::count() const { return armed.count; }
uint64_t live_allocations() { return live; }

}  // namespace greta::test

void* operator new(size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, size_t(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, size_t(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 0); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 0); }
void operator delete(void* pointer) noexcept { release(pointer); }
void operator delete[](void* pointer) noexcept { release(pointer); }
void operator delete(void* pointer, size_t) noexcept { release(pointer); }
void operator delete[](void* pointer, size_t) noexcept { release(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { release(pointer); }
void operator delete[](void* pointer, std::align_val_t) noexcept { release(pointer); }
void operator delete(void* pointer, size_t, std::align_val_t) noexcept { release(pointer); }
void operator delete[](void* pointer, size_t, std::align_val_t) noexcept { release(pointer); }
void operator delete(void* pointer, const std::nothrow_t&) noexcept { release(pointer); }
void operator delete[](void* pointer, const std::nothrow_t&) noexcept { release(pointer); }
