// Makes the system refuse threads. This program's pthread_create fails while a test asks for it, except under
// sanitizers, which have one of their own.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GRETA_THREADS_CAN_FAIL 0
#elif defined(__has_feature)
#define GRETA_THREADS_CAN_FAIL (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define GRETA_THREADS_CAN_FAIL 1
#endif

namespace greta::test {

// While it lives, threads that this thread starts are refused, as where a limit on processes is reached.
class FailingThreads {
 public:
  FailingThreads();
  ~FailingThreads();
  FailingThreads(const FailingThreads&) = delete;
  FailingThreads& operator=(const FailingThreads&) = delete;
};

}  // namespace greta::test
