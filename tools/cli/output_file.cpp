#include "output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "console.h"

namespace greta::cli {

void make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1))
    if (mkdir(path.substr(0, at).c_str(), 0700) != 0 && errno != EEXIST) return;
}

// A file for its owner alone is always made anew: what stands at its path may be a symbolic link, or readable
// for others.
static std::FILE* open_for_owner(const std::string& path) {
  struct stat about;
  const bool there = lstat(path.c_str(), &about) == 0;
  if (there && (S_ISREG(about.st_mode) || S_ISLNK(about.st_mode))) std::remove(path.c_str());
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  std::FILE* file = fd < 0 ? nullptr : fdopen(fd, "wb");
  if (fd >= 0 && !file) close(fd);
  return file;
}

OutputFile::OutputFile(std::string path, Readers readers, std::string shown)
    : path_(std::move(path)),
      shown_(shown.empty() ? path_ : std::move(shown)),
      file_(readers == Readers::Owner ? open_for_owner(path_) : std::fopen(path_.c_str(), "wb")) {
  check(file_ != nullptr);
}

OutputFile::~OutputFile() {
  if (file_) std::fclose(file_);
  // Half a file is worse than none. A device or a pipe is not removed.
  struct stat about;
  if (!finished_ && stat(path_.c_str(), &about) == 0 && S_ISREG(about.st_mode)) std::remove(path_.c_str());
}

void OutputFile::check(bool ok) const {
  if (!ok) throw Failed(shown_ + ": " + std::strerror(errno));
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

void write_whole(const std::string& path, const std::string& text) {
  struct stat about;
  const bool is_no_file = stat(path.c_str(), &about) == 0 && !S_ISREG(about.st_mode);
  OutputFile file(is_no_file ? path : path + ".part", OutputFile::Readers::Anyone, path);
  file.write(text.data(), text.size());
  if (is_no_file)
    file.finish();
  else
    file.finish_as(path);
}

}  // namespace greta::cli
