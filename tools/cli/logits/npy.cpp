// The .npy format, version 1.0: magic, length of the header, a Python dictionary padded to 64 bytes, then the
// data.
#include "logits/npy.h"

#include <bit>

namespace greta::cli {

static_assert(std::endian::native == std::endian::little, "'<f4' is written as it lies in memory");

NpyWriter::NpyWriter(std::string path, uint64_t rows, uint64_t columns)
    : columns_(columns), file_(std::move(path)) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(columns) + "), }";
  constexpr size_t kPrefix = 10;  // magic, version, two bytes of length
  header.append(63 - (kPrefix + header.size()) % 64, ' ');
  header += '\n';
  const unsigned char prefix[kPrefix] = {0x93,
                                         'N',
                                         'U',
                                         'M',
                                         'P',
                                         'Y',
                                         1,
                                         0,
                                         static_cast<unsigned char>(header.size() & 0xff),
                                         static_cast<unsigned char>(header.size() >> 8)};
  file_.write(prefix, kPrefix);
  file_.write(header.data(), header.size());
}

void NpyWriter::write(const float* values, uint64_t rows) {
  file_.write(values, rows * columns_ * sizeof(float));
}

}  // namespace greta::cli
