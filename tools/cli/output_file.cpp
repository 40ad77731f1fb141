#include "output_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "console.h"

namespace greta::cli {

OutputFile::OutputFile(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wb")) {
  check(file_ != nullptr);
}

OutputFile::~OutputFile() {
  if (file_) std::fclose(file_);
  // Half a file is worse than none. A device or a pipe is not ours to remove.
  struct stat about;
  if (!finished_ && stat(path_.c_str(), &about) == 0 && S_ISREG(about.st_mode)) std::remove(path_.c_str());
}

void OutputFile::check(bool ok) const {
  if (!ok) throw Failed(path_ + ": " + std::strerror(errno));
}

void OutputFile::write(const void* data, size_t bytes) { check(std::fwrite(data, 1, bytes, file_) == bytes); }

void OutputFile::finish() {
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  check(closed);
  finished_ = true;
}

}  // namespace greta::cli
