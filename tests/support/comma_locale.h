// Sets a locale with a decimal comma for as long as the object lives. None need be installed, since the file
// that the C library reads is written to a temporary folder.
#pragma once
#include <string>

class CommaLocale {
 public:
  CommaLocale();
  ~CommaLocale();
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  // False if the C library refuses the file. Then nothing has changed.
  bool is_set() const { return set_; }

 private:
  std::string folder_;
  bool set_ = false;
};
