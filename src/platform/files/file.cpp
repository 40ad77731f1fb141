// A read-only file over POSIX calls. It opens regular files only, since a pipe has no size.
#include "platform/files/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "platform/checked.h"
#include "platform/text/format_text.h"

namespace greta {

File::~File() {
  if (pages_) munmap(pages_, size_);
  if (descriptor_ >= 0) close(descriptor_);
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)),
      pages_(std::exchange(other.pages_, nullptr)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(pages_, other.pages_);
  return *this;
}

Status File::open(const char* path) {
  if (is_open()) return fail(Code::Argument, "cannot open '%s': this object has a file already", path);
  // With O_NONBLOCK a pipe that nobody writes to is refused below instead of waited for.
  const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return fail(Code::File, "cannot open '%s': %s", path, errno_text(errno));
  struct stat info;
  if (fstat(descriptor, &info) != 0) {
    const int error = errno;
    close(descriptor);
    return fail(Code::File, "cannot open '%s': %s", path, errno_text(error));
  }
  if (!S_ISREG(info.st_mode)) {
    close(descriptor);
    return fail(Code::File, "cannot open '%s': it is %s, expected a regular file", path,
                S_ISDIR(info.st_mode) ? "a directory" : "a device or a pipe");
  }
  descriptor_ = descriptor;
  size_ = uint64_t(info.st_size);
  return {};
}

Status File::read_at(uint64_t offset, void* to, uint64_t bytes) const {
  uint64_t end;
  if (!checked_add(offset, bytes, &end) || end > size_)
    return fail(Code::File, "cannot read %llu bytes at offset %llu: the file has %llu bytes",
                (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)size_);
  uint8_t* next = static_cast<uint8_t*>(to);
  while (offset < end) {
    const uint64_t piece = end - offset < (1u << 30) ? end - offset : (1u << 30);
    const ssize_t got = pread(descriptor_, next, piece, off_t(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(Code::File, "cannot read %llu bytes at offset %llu: %s", (unsigned long long)piece,
                  (unsigned long long)offset, errno_text(errno));
    if (got == 0)
      return fail(
          Code::File,
          "cannot read %llu bytes at offset %llu: the file ends before, it had %llu bytes when it was opened",
          (unsigned long long)(end - offset), (unsigned long long)offset, (unsigned long long)size_);
    next += got;
    offset += uint64_t(got);
  }
  return {};
}

Status File::map(const uint8_t** out_pages) {
  if (!pages_) {
    if (!is_open() || size_ == 0) return fail(Code::File, "cannot map a file of 0 bytes");
    void* pages = mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor_, 0);
    if (pages == MAP_FAILED)
      return fail(Code::Memory, "cannot map %llu bytes: %s", (unsigned long long)size_, errno_text(errno));
    pages_ = static_cast<uint8_t*>(pages);
  }
  *out_pages = pages_;
  return {};
}

Status File::check_mapped() const {
  if (!pages_) return {};
  struct stat info;
  if (fstat(descriptor_, &info) != 0)
    return fail(Code::File, "cannot read the file's size: %s", errno_text(errno));
  if (uint64_t(info.st_size) >= size_) return {};
  return fail(
      Code::File,
      "the file has %llu bytes, it had %llu when it was mapped: it must not be cut while it is in use",
      (unsigned long long)info.st_size, (unsigned long long)size_);
}

}  // namespace greta
