// Reads the arrays of a .npz file (a zip of .npy files, stored or deflated), enough for golden data.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace greta::test {

struct Array {
  std::string type;  // numpy's descr: "<f4", "|u1", "<i8"
  std::vector<uint64_t> shape;
  std::vector<uint8_t> bytes;  // row-major
};

// The arrays by their names, without ".npy". The result is empty if the file cannot be read.
std::map<std::string, Array> read_npz(const std::string& path);

}  // namespace greta::test
