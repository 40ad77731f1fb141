// Makes the system refuse threads. This program's pthread_create fails while a test asks for it.
#pragma once

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
