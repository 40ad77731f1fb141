// Writes a .npy file of float32 [rows][columns], row by row, with the number of rows known beforehand.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>

namespace greta::cli {

class NpyWriter {
 public:
  NpyWriter(std::string path, uint64_t rows, uint64_t columns);  // throws Failed
  ~NpyWriter();                                                  // removes the file unless finished
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;
  void write(const float* values, uint64_t rows);  // [rows][columns]
  void finish();

 private:
  void check(bool ok) const;
  std::string path_;
  uint64_t columns_;
  std::FILE* file_;
  bool finished_ = false;
};

}  // namespace greta::cli
