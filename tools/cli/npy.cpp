// The .npy format, version 1.0: magic, length of the header, a Python dictionary padded to 64 bytes, data.
#include "npy.h"

#include <sys/stat.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "console.h"

namespace greta::cli {

static_assert(std::endian::native == std::endian::little, "'<f4' is written as it lies in memory");

NpyWriter::NpyWriter(std::string path, uint64_t rows, uint64_t columns)
    : path_(std::move(path)), columns_(columns), file_(std::fopen(path_.c_str(), "wb")) {
  if (!file_) throw Failed(path_ + ": " + std::strerror(errno));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " +
                       std::to_string(columns) + "), }";
  constexpr size_t kPrefix = 10;  // magic, version, two bytes of length
  header.append(63 - (kPrefix + header.size()) % 64, ' ');
  header += '\n';
  const unsigned char prefix[kPrefix] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0,
                                         static_cast<unsigned char>(header.size() & 0xff),
                                         static_cast<unsigned char>(header.size() >> 8)};
  std::fwrite(prefix, 1, kPrefix, file_);
  std::fwrite(header.data(), 1, header.size(), file_);
}

NpyWriter::~NpyWriter() {
  if (file_) std::fclose(file_);
  // Half an array is worse than none. A device or a pipe is not ours to remove.
  struct stat about;
  if (!finished_ && stat(path_.c_str(), &about) == 0 && S_ISREG(about.st_mode)) std::remove(path_.c_str());
}

void NpyWriter::check(bool ok) const {
  if (!ok) throw Failed(path_ + ": " + std::strerror(errno));
}

void NpyWriter::write(const float* values, uint64_t rows) {
  const size_t count = rows * columns_;
  check(std::fwrite(values, sizeof(float), count, file_) == count);
}

void NpyWriter::finish() {
  const bool written = std::ferror(file_) == 0;
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  check(written && closed);
  finished_ = true;
}

}  // namespace greta::cli
