// A write beyond the process's limit on the size of files sends SIGXFSZ, which ends the process.
#pragma once
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cerrno>

namespace greta {

// While this lives, such a write of this thread gives an error (EFBIG) and no signal. One that the program
// was sent before stays.
class HiddenFileSizeSignal {
 public:
  HiddenFileSizeSignal() {
    sigset_t pending;
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ);
  }
  ~HiddenFileSizeSignal() {
    const int error = errno;
    const timespec none = {};
    if (!was_pending_)
      while (sigtimedwait(&signal_, nullptr, &none) < 0 && errno == EINTR) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  HiddenFileSizeSignal(const HiddenFileSizeSignal&) = delete;
  HiddenFileSizeSignal& operator=(const HiddenFileSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
  bool was_pending_ = false;
};

}  // namespace greta
