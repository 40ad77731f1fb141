// Writes a .npy file of float32 [rows][columns] row by row. The number of rows is known beforehand.
#pragma once
#include <cstdint>
#include <string>

#include "output_file.h"

namespace greta::cli {

class NpyWriter {  // throws Failed
 public:
  NpyWriter(std::string path, uint64_t rows, uint64_t columns);
  void write(const float* values, uint64_t rows);  // [rows][columns]
  void finish() { file_.finish(); }

 private:
  uint64_t columns_;
  OutputFile file_;
};

}  // namespace greta::cli
