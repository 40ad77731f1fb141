// Tells whether an object was made in this process. A child of fork() has copies of its parent's objects, but
// not the threads and driver connections behind them.
#pragma once
#include "platform/failure/status.h"

namespace greta {

class Process {
 public:
  Process();               // remembers the process that makes it
  bool elsewhere() const;  // the caller is a child of that process
  Status check() const;    // fails with Code::Device if so
 private:
  int id_;
};

// An object that a child of fork() does not destroy. The destructor of a condition variable, for one, would
// wait for ever for a thread that only the parent has.
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
