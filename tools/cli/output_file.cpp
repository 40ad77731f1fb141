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
  // Half a file is worse than none. A device or a pipe is not removed.
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

void OutputFile::finish_as(const std::string& path) {
  finish();
  if (std::rename(path_.c_str(), path.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  std::remove(path_.c_str());
  throw Failed(path + ": " + why);
}

}  // namespace greta::cli
