// Which process an object was made in. A child of fork() has copies of its parent's objects, but none of the
// threads and none of the drivers' connections behind them.
#pragma once
#include "platform/status.h"

namespace greta {

class Process {
 public:
  Process();               // this one
  bool elsewhere() const;  // asked by a child of the process that made it
  Status check() const;    // Device if so
 private:
  int id_;
};

// What a child must not destroy: a condition variable for which a thread of the parent waits would be waited
// for without end. It is left alone there.
template <class T>
class Unforked {
 public:
  Unforked() : object_(new T) {}
  ~Unforked() {
    if (!process_.elsewhere()) delete object_;
  }
  Unforked(const Unforked&) = delete;
  Unforked& operator=(const Unforked&) = delete;
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }

 private:
  Process process_;
  T* object_;
};

}  // namespace greta
