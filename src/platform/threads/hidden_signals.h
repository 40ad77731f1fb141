// Threads of the library block signals, which are the program's, except those that a thread causes itself.
#pragma once
#include <pthread.h>
#include <signal.h>

namespace greta {

// Threads that are started while this lives block them; the thread that makes it gets its own mask back.
class HiddenSignals {
 public:
  HiddenSignals() {
    sigset_t hidden;
    sigfillset(&hidden);
    const int own[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (const int signal : own) sigdelset(&hidden, signal);
    pthread_sigmask(SIG_SETMASK, &hidden, &before_);
  }
  ~HiddenSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HiddenSignals(const HiddenSignals&) = delete;
  HiddenSignals& operator=(const HiddenSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace greta
