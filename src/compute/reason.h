// Why a kernel row does not take a sequence of calls.
#pragma once

namespace greta {

constexpr unsigned kReasonBytes = 512;

// A planner tries dozens of rows for each launch. So that a "no" costs nothing, its sentence is formatted
// only where someone has asked for it.
class Reason {
 public:
  explicit Reason(bool asked = false) : asked_(asked) { text_[0] = 0; }
  // Always false, which is the answer; keeps the sentence if asked.
  bool no(const char* format, ...) __attribute__((format(printf, 2, 3)));
  const char* text() const { return text_; }  // the last one, "" if there is none

 private:
  bool asked_;
  char text_[kReasonBytes];
};

}  // namespace greta
