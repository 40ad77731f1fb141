// Where a thread of the program may be cancelled (pthread_cancel) while it is in the library: in waits for
// events and for requests. Everywhere else that would leave work half done, so it is put off.
#pragma once
#include <pthread.h>

#include <utility>

namespace greta {

// Whether the program lets the thread be cancelled, as it was when the thread came into the library.
inline thread_local int cancel_state = PTHREAD_CANCEL_ENABLE;

// A call of the library. It is not cancelled while this lives.
class Uncancelled {
 public:
  Uncancelled() {
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    outer_ = std::exchange(cancel_state, before);
  }
  ~Uncancelled() { pthread_setcancelstate(std::exchange(cancel_state, outer_), nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int outer_;
};

// A part of such a call in which the thread may be cancelled if the program allows it.
class Cancellable {
 public:
  Cancellable() { pthread_setcancelstate(cancel_state, &before_); }
  ~Cancellable() { pthread_setcancelstate(before_, nullptr); }
  Cancellable(const Cancellable&) = delete;
  Cancellable& operator=(const Cancellable&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace greta
