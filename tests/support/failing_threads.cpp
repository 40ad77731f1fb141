#include "support/failing_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>

#include "support/failing_memory.h"

[[maybe_unused]] static thread_local bool refused = false;

namespace greta::test {

FailingThreads::FailingThreads() { refused = true; }
FailingThreads::~FailingThreads() { refused = false; }

}  // namespace greta::test

#if GRETA_THREADS_CAN_FAIL
// The linker takes this one before the C library's.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return refused || greta::test::next_allocation_fails() ? EAGAIN
                                                         : create(thread, attributes, start, argument);
}
#endif
