// A locale with a decimal comma, for as long as an object lives. No machine needs to have one
// installed: the file that a C library reads is written into a folder of its own.
#pragma once
#include <string>

class CommaLocale {
 public:
  CommaLocale();
  ~CommaLocale();
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  // False where the C library does not take the file. Then the process is as it was before.
  bool is_set() const { return set_; }

 private:
  std::string folder_;
  bool set_ = false;
};
