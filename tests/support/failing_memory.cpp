#include "support/failing_memory.h"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <new>

// The linker gives the calls of this program's objects to __wrap_X, and the C library's X to __real_X.
extern "C" {
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* pointer, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void* pointer);
void* __real_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void* address, size_t bytes);
}

namespace {

struct Armed {
  bool on = false;
  uint64_t count = 0, fail_at = 0;
  int64_t bytes = 0, peak = 0;
};
thread_local Armed armed;
std::atomic<uint64_t> live{0};

void held(int64_t bytes) {
  if (!armed.on) return;
  armed.bytes += bytes;
  armed.peak = std::max(armed.peak, armed.bytes);
}

void* counted(void* block) {
  if (block) ++live, held(int64_t(malloc_usable_size(block)));
  return block;
}

void* refused() {
  errno = ENOMEM;
  return nullptr;
}

void* allocate(size_t bytes, size_t alignment) noexcept {
  if (greta::test::next_allocation_fails()) return nullptr;
  if (!bytes) bytes = 1;
  return counted(alignment > alignof(std::max_align_t)
                     ? __real_aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                     : __real_malloc(bytes));
}

void* allocate_or_throw(size_t bytes, size_t alignment = 0) {
  void* const pointer = allocate(bytes, alignment);
  if (!pointer) throw std::bad_alloc();
  return pointer;
}

void release(void* pointer) noexcept {
  if (pointer) --live, held(-int64_t(malloc_usable_size(pointer)));
  __real_free(pointer);
}

}  // namespace

namespace greta::test {

FailingMemory::FailingMemory(uint64_t fail_at) : fail_at_(fail_at) { armed = {true, 0, fail_at, 0, 0}; }
FailingMemory::~FailingMemory() { armed = {}; }
uint64_t FailingMemory::count() const { return armed.count; }
uint64_t FailingMemory::peak_bytes() const { return uint64_t(armed.peak); }
uint64_t live_allocations() { return live; }
bool next_allocation_fails() { return armed.on && ++armed.count == armed.fail_at; }

}  // namespace greta::test

extern "C" {

void* __wrap_malloc(size_t bytes) {
  return greta::test::next_allocation_fails() ? refused() : counted(__real_malloc(bytes));
}

void* __wrap_calloc(size_t count, size_t bytes) {
  return greta::test::next_allocation_fails() ? refused() : counted(__real_calloc(count, bytes));
}

void* __wrap_realloc(void* pointer, size_t bytes) {
  if (greta::test::next_allocation_fails()) return refused();
  const int64_t before = pointer ? int64_t(malloc_usable_size(pointer)) : 0;
  void* const block = __real_realloc(pointer, bytes);
  if (!block) return block;
  if (!pointer) ++live;
  held(int64_t(malloc_usable_size(block)) - before);
  return block;
}

void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return greta::test::next_allocation_fails() ? refused() : counted(__real_aligned_alloc(alignment, bytes));
}

void __wrap_free(void* pointer) { release(pointer); }

void* __wrap_mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (greta::test::next_allocation_fails()) return refused(), MAP_FAILED;
  void* const pages = __real_mmap(address, bytes, protection, flags, file, offset);
  if (pages != MAP_FAILED) ++live, held(int64_t(bytes));
  return pages;
}

int __wrap_munmap(void* address, size_t bytes) {
  const int result = __real_munmap(address, bytes);
  if (!result) --live, held(-int64_t(bytes));
  return result;
}
}

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
