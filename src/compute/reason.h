// Why a kernel row does not take a sequence of calls.
#pragma once

namespace greta {

constexpr unsigned kReasonBytes = 512;

// A planner tries dozens of rows for each launch. A "no" must cost nothing, so its sentence is formatted only
// if someone has asked for it.
class Reason {
 public:
  explicit Reason(bool asked = false) : asked_(asked) { text_[0] = 0; }
  // Keeps the sentence if it was asked for. Always returns false, as the caller's answer.
  bool no(const char* format, ...) __attribute__((format(printf, 2, 3)));
  const char* text() const { return text_; }  // the last sentence, or ""

 private:
  bool asked_;
  char text_[kReasonBytes];
};

}  // namespace greta
